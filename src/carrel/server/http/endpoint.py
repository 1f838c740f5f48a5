"""Endpoint declarations: route, models, permission, refusals and handler.

For example::

    @endpoint("PUT", "/v1/things/{id}", permission=Permission.WORKSPACE_WRITE, body=ThingBody,
              responses={200: ThingModel}, refusals=(NotFound, WorkspaceConflict),
              headers=(IF_MATCH,), tag="Things")
    async def put(request: Request[ThingBody]) -> Response:
        ...
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypedDict, Unpack

import msgspec

from carrel.core.access import Actor, Permission
from carrel.core.errors import PayloadTooLarge, Refusal, Unauthenticated, WorkspaceTooLarge
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.response import Response
from carrel.server.http.response_cache import AppCaches

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    B = TypeVar("B", default=Any)
    Q = TypeVar("Q", default=Any)
else:  # The standard TypeVar has no default before Python 3.13.
    from typing import TypeVar

    B, Q = TypeVar("B"), TypeVar("Q")

__all__ = [
    "Endpoint",
    "Request",
    "RequestHeader",
    "RequestModel",
    "Response",
    "ResponseModel",
    "endpoint",
]

Headers: TypeAlias = Mapping[bytes, bytes]
"""Request headers by lower-case name; repeated headers are joined by commas."""


class RequestModel(
    msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Base of request bodies and queries: camelCase, unknown fields refused."""


class ResponseModel(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of response bodies: camelCase on the wire."""


class Request(Generic[B, Q]):
    """A request whose credential, permission, path, query and body are validated."""

    __slots__ = (
        "_actor",
        "body",
        "caches",
        "committed_revision",
        "headers",
        "https",
        "idempotency_key",
        "is_head",
        "params",
        "ports",
        "query",
        "raw_body",
        "request_id",
    )

    def __init__(
        self,
        ports: Ports,
        actor: Actor | None,
        headers: Headers,
        params: dict[str, str],
        request_id: str,
        caches: AppCaches,
    ) -> None:
        self.ports = ports
        self.caches = caches
        """Caches of the app that serves the request."""
        self.params = params
        self.request_id = request_id
        self.raw_body = b""
        self.idempotency_key: IdempotencyKey | None = None
        """Set if the request carries an Idempotency-Key; goes into the commit."""
        self.committed_revision = 0
        """Revision that an earlier attempt wrote, while its response is built again."""
        self.body: B
        self.query: Q
        self._actor = actor
        self.headers = headers
        self.is_head = False
        """Whether only the headers of the response are sent."""
        self.https = False
        """Whether the connection to this server uses TLS; a proxy may hide it."""

    @property
    def actor(self) -> Actor:
        """The authenticated caller. Raises Unauthenticated on a public endpoint."""
        if self._actor is None:
            raise Unauthenticated("a credential is required")
        return self._actor

    def header(self, name: bytes) -> str | None:
        """Value of a header, or None; `name` is in lower case."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class ReceivedBody(Protocol):
    """A body that was received in parts."""

    @property
    def sha256(self) -> bytes:
        """SHA-256 of the bytes as they were sent."""


EndpointHandler: TypeAlias = Callable[[Request[Any, Any]], Awaitable[Response]]
ByteReceiver: TypeAlias = Callable[
    [Request[Any, Any], AsyncIterator[bytes]], Awaitable[ReceivedBody]
]
ResponseRebuilder: TypeAlias = Callable[[Request[Any, Any], tuple[int, ...]], Awaitable[Response]]

ResponseCompleter: TypeAlias = Callable[[Request[Any, Any], Response], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """A request header that an endpoint reads, for the API description."""

    name: str
    description: str
    choices: tuple[str, ...] = ()
    """All valid values; empty if any value is valid."""


IF_MATCH: Final = RequestHeader(
    "If-Match", "Apply only if the current ETag matches; `*`: only if the resource exists."
)
IF_NONE_MATCH: Final = RequestHeader("If-None-Match", "Return 304 if the current ETag matches.")
IF_ABSENT: Final = RequestHeader(
    "If-None-Match", "Apply only if the resource does not exist.", ("*",)
)
LAST_EVENT_ID: Final = RequestHeader("Last-Event-ID", "Resume after this event.")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the API: where it listens, what it accepts and returns."""

    method: str
    path: str
    """Template: `{name}` is one segment, `{name...}` the remaining ones."""
    run: EndpointHandler
    id: str
    public: bool = False
    """Needs no credential."""
    permission: Permission | None = None
    """Permission the credential needs; None: any credential of a tenant."""
    platform: bool | None = False
    """True: platform credential only; False: tenant credentials; None: either."""
    body: Any = None
    """Struct the JSON body is decoded to, or `bytes` for the raw body."""
    receive_bytes: ByteReceiver | None = None
    """Receives a body that is not JSON in parts; its result becomes the body of the request."""
    query: Any = None
    allow_unknown_query: bool = False
    """Ignore unknown query parameters instead of refusing them."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Types of path parameters, for the API description; string if absent."""
    responses: Mapping[int, Any] = field(default_factory=lambda: {200: None})
    """Content per success status: a type or several, a media type, or None for no body."""
    byte_responses: frozenset[int] = frozenset()
    """Success statuses whose content may also be bytes of any media type."""
    refusals: tuple[type[Refusal], ...] = ()
    headers: tuple[RequestHeader, ...] = ()
    response_headers: tuple[str, ...] = ()
    """Response headers, for the API description."""
    tag: str = ""
    summary: str = ""
    description: str = ""
    idempotent: bool = False
    """Honours an Idempotency-Key."""
    is_write: Callable[[Request[Any, Any]], bool] | None = None
    """Whether a request writes, if only some do; the key of others is ignored."""
    rebuild: ResponseRebuilder | None = None
    """Builds a lost response again, from the committed versions."""
    complete: ResponseCompleter | None = None
    """Completes a replayed response of which `stored_body` was stored."""
    max_body: int | None = None
    error_dialect: ErrorDialect | None = None
    """Headers and error format of a foreign API convention."""

    def __post_init__(self) -> None:
        if self.idempotent and self.public:
            raise ValueError(f"{self.id}: an idempotent endpoint cannot be public")
        for model in (self.body, self.query):
            config = getattr(model, "__struct_config__", None)
            if config is not None and not config.forbid_unknown_fields:
                raise ValueError(f"{self.id}: {model.__name__} must forbid unknown fields")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def body_too_large(self) -> type[Refusal]:
        """Refusal of a body above the limit; that of a file where the body carries files."""
        return WorkspaceTooLarge if WorkspaceTooLarge in self.refusals else PayloadTooLarge


class EndpointOptions(TypedDict, total=False):
    """Keyword options of `endpoint`; see the fields of Endpoint."""

    id: str
    public: bool
    permission: Permission
    platform: bool | None
    allow_unknown_query: bool
    params: Mapping[str, Any]
    receive_bytes: ByteReceiver
    byte_responses: frozenset[int]
    responses: Mapping[int, Any]
    refusals: tuple[type[Refusal], ...]
    headers: tuple[RequestHeader, ...]
    response_headers: tuple[str, ...]
    tag: str
    idempotent: bool
    is_write: Callable[[Request[Any, Any]], bool]
    rebuild: ResponseRebuilder
    complete: ResponseCompleter
    max_body: int
    error_dialect: ErrorDialect


def endpoint(
    method: str,
    path: str,
    *,
    body: type[B] | None = None,
    query: type[Q] | None = None,
    **options: Unpack[EndpointOptions],
) -> Callable[[Callable[[Request[B, Q]], Awaitable[Response]]], Endpoint]:
    """Turn a function into an Endpoint; its docstring becomes summary and description."""

    def decorate(run: Callable[[Request[B, Q]], Awaitable[Response]]) -> Endpoint:
        summary, _, description = inspect.cleandoc(run.__doc__ or "").partition("\n")
        module_name = run.__module__.rpartition(".")[2]
        options.setdefault("id", f"{module_name}_{getattr(run, '__name__', 'run')}")
        options.setdefault("tag", module_name)
        return Endpoint(
            method.upper(),
            path,
            run,
            body=body,
            query=query,
            summary=summary,
            description=description.strip(),
            **options,
        )

    return decorate
