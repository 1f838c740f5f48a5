"""What an endpoint is: where it listens, what it takes, gives and refuses, and what it does.

For example::

    @endpoint("PUT", "/v1/things/{id}", permission=Permission.WORKSPACE_WRITE, body=NewThing,
              answers={200: Thing}, refuses=(Missing, Stale), headers=(IF_MATCH,), tag="Things")
    async def put(call: Call[NewThing]) -> Answer:
        ...
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypedDict, Unpack

import msgspec

from carrel.core.access import Actor, Permission
from carrel.core.errors import Refusal, Unauthenticated
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.response import Response

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    B = TypeVar("B", default=Any)
    Q = TypeVar("Q", default=Any)
else:  # The default only spares readers a parameter, and the standard TypeVar has none yet.
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
"""A request's headers by their lower-case names; what came on several lines is joined by commas."""


class RequestModel(
    msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What bodies and queries are made from: camelCase outside, and nothing that we do not know."""


class ResponseModel(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What answers are made from."""


class Request(Generic[B, Q]):
    """One request, its credential, permission, path, query and body already checked."""

    __slots__ = (
        "_actor",
        "body",
        "headers",
        "https",
        "params",
        "ports",
        "query",
        "raw",
        "receipt",
        "request_id",
    )

    def __init__(
        self,
        ports: Ports,
        actor: Actor | None,
        headers: Headers,
        params: dict[str, str],
        request_id: str,
    ) -> None:
        self.ports = ports
        self.params = params
        self.request_id = request_id
        self.raw = b""
        self.receipt: IdempotencyKey | None = None
        """For ``Commit.receipt``, where the request carried an Idempotency-Key."""
        self.body: B
        self.query: Q
        self._actor = actor
        self.headers = headers
        self.https = False
        """Whether it came over TLS, as far as is known here."""

    @property
    def actor(self) -> Actor:
        """Who asks. A public endpoint has nobody to look for."""
        if self._actor is None:
            raise Unauthenticated("a credential is needed")
        return self._actor

    def header(self, name: bytes) -> str | None:
        """What a header says; its name is in lower case."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


Run: TypeAlias = Callable[[Request[Any, Any]], Awaitable[Response]]
Rebuild: TypeAlias = Callable[[Request[Any, Any], tuple[int, ...]], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """A request header that an endpoint heeds."""

    name: str
    meaning: str
    choices: tuple[str, ...] = ()
    """All it may say, where that is not open."""


IF_MATCH: Final = RequestHeader(
    "If-Match", "Only if the current ETag is among these; `*`: if it exists."
)
IF_NONE_MATCH: Final = RequestHeader(
    "If-None-Match", "Only if the current ETag is not among these."
)
IF_ABSENT: Final = RequestHeader("If-None-Match", "Only if it does not exist yet.", ("*",))
LAST_EVENT_ID: Final = RequestHeader("Last-Event-ID", "Go on after this event.")


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    """A template: ``{name}`` is one segment, ``{name...}`` the rest, maybe up to a last literal."""
    run: Run
    id: str
    public: bool = False
    """Answers without a credential."""
    permission: Permission | None = None
    """What the credential must carry; None on one that any credential of a tenant may call."""
    platform: bool | None = False
    """Only for the credential that may create tenants, which may call nothing else; None: tells
    for itself."""
    body: Any = None
    """The Struct that its JSON body becomes, or ``bytes`` for one that is taken as it is."""
    query: Any = None
    loose_query: bool = False
    """Ignores query parameters it does not know, where others refuse them."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The types of path parameters, for the documentation only; text where absent."""
    answers: Mapping[int, Any] = field(default_factory=lambda: {200: None})
    """What each status it may give carries: a type, a media type, or None for nothing."""
    refuses: tuple[type[Refusal], ...] = ()
    headers: tuple[RequestHeader, ...] = ()
    gives: tuple[str, ...] = ()
    """Headers of its answers worth telling about."""
    tag: str = ""
    summary: str = ""
    description: str = ""
    idempotent: bool = False
    """Heeds an Idempotency-Key."""
    rebuild: Rebuild | None = None
    """Makes the answer anew from the versions it committed, where it was lost on the way."""
    max_body: int | None = None
    manner: ErrorDialect | None = None
    """Where it keeps somebody else's convention."""

    def __post_init__(self) -> None:
        if self.idempotent and self.public:
            raise ValueError(f"{self.id}: an Idempotency-Key belongs to a tenant")
        for kind in (self.body, self.query):
            config = getattr(kind, "__struct_config__", None)
            if config is not None and not config.forbid_unknown_fields:
                raise ValueError(f"{self.id}: {kind.__name__} would let unknown fields pass")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


class EndpointOptions(TypedDict, total=False):
    """What `endpoint` takes beside what it checks the function against: see Endpoint."""

    id: str
    public: bool
    permission: Permission
    platform: bool | None
    loose_query: bool
    params: Mapping[str, Any]
    answers: Mapping[int, Any]
    refuses: tuple[type[Refusal], ...]
    headers: tuple[RequestHeader, ...]
    gives: tuple[str, ...]
    tag: str
    idempotent: bool
    rebuild: Rebuild
    max_body: int
    manner: ErrorDialect


def endpoint(
    method: str,
    path: str,
    *,
    body: type[B] | None = None,
    query: type[Q] | None = None,
    **facts: Unpack[EndpointOptions],
) -> Callable[[Callable[[Request[B, Q]], Awaitable[Response]]], Endpoint]:
    """Turn a function into an Endpoint; its docstring becomes summary and description."""

    def of(run: Callable[[Request[B, Q]], Awaitable[Response]]) -> Endpoint:
        summary, _, rest = inspect.cleandoc(run.__doc__ or "").partition("\n")
        room = run.__module__.rpartition(".")[2]
        facts.setdefault("id", f"{room}_{getattr(run, '__name__', 'run')}")
        facts.setdefault("tag", room)
        return Endpoint(
            method.upper(),
            path,
            run,
            body=body,
            query=query,
            summary=summary,
            description=rest.strip(),
            **facts,
        )

    return of
