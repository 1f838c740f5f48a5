"""One request on its way through the pipeline, and the endpoint that will answer it."""

from __future__ import annotations

from base64 import b64decode
from time import perf_counter
from typing import Any
from urllib.parse import quote

from carrel.core.access import Actor
from carrel.core.errors import Forbidden
from carrel.server.http.endpoint import Endpoint, Headers, Request
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.metrics import RouteHistogram
from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_parsing import (
    BodyLimits,
    BodyReader,
    QueryReader,
    Receive,
    merge_headers,
    read_body,
)
from carrel.server.http.router import RouteEntry, Values
from carrel.server.http.sse import Send


class CompiledEndpoint:
    """An endpoint with everything that can be worked out before a request comes."""

    __slots__ = (
        "basic",
        "body",
        "endpoint",
        "limits",
        "manner",
        "meter",
        "most",
        "patience",
        "public",
        "query",
        "run",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        meter: RouteHistogram,
        limits: BodyLimits,
        read_timeouts: ReadTimeouts,
    ) -> None:
        self.endpoint = endpoint
        self.run = endpoint.run
        self.public = endpoint.public
        self.manner = endpoint.error_dialect
        self.basic = endpoint.error_dialect is not None and endpoint.error_dialect.basic
        """Whether a token may come as a password."""
        self.meter = meter
        self.limits = limits
        self.patience = read_timeouts
        self.query = QueryReader(endpoint.query, endpoint.allow_unknown_query)
        self.body = None if endpoint.body in (None, bytes) else BodyReader(endpoint.body)
        self.most = limits.body if endpoint.max_body is None else endpoint.max_body

    def authorize(self, actor: Actor) -> None:
        """Raises Forbidden."""
        endpoint = self.endpoint
        if endpoint.permission is not None:
            actor.require(endpoint.permission)
        if endpoint.platform is not actor.platform and endpoint.platform is not None:
            raise Forbidden("this credential is for another purpose")

    async def read(self, call: Request[Any, Any], exchange: RequestContext) -> None:
        """Take in the body. Raises Malformed, BodyTooLarge, TooSlow or Gone."""
        headers = exchange.headers
        call.raw = await read_body(exchange.receive, headers, self.most, self.limits, self.patience)
        call.body = call.raw if self.body is None else self.body.read(call.raw, headers)


def basic_to_bearer(headers: Headers) -> Headers:
    """The same with the password of a Basic authentication as a token, whoever it is said to be."""
    scheme, _, wrapped = headers.get(b"authorization", b"").strip().partition(b" ")
    if scheme.lower() != b"basic":
        return headers
    try:
        _, _, password = b64decode(wrapped.strip(), validate=True).partition(b":")
    except ValueError:
        password = b""
    return {**headers, b"authorization": b"Bearer " + password}


class RequestContext:
    """A request, and what has become of it so far."""

    # Set only where they differ: most requests go through with two or three of them.
    leaf: RouteEntry[CompiledEndpoint] | None = None
    values: Values = ()
    bound: CompiledEndpoint | None = None
    actor: Actor | None = None
    status: int = 0
    """0 until there is an answer, and for good if the client left before."""
    seconds: float | None = None
    """How long it took, where that is not until now."""
    request_id: str = ""

    def __init__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.began = perf_counter()
        self.method: str = scope["method"]
        self.raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
        self.query: bytes = scope["query_string"]
        self.https = scope.get("scheme") == "https"
        pairs = scope["headers"]
        headers: Headers = dict(pairs)
        self.headers = headers if len(headers) == len(pairs) else merge_headers(pairs)
        self.receive = receive
        self.send = send

    @property
    def route(self) -> str:
        return "(unknown)" if self.leaf is None else self.leaf.template

    @property
    def manner(self) -> ErrorDialect | None:
        """How to answer at this address, where that is not as everywhere."""
        if self.bound is not None:
            return self.bound.manner
        others = self.leaf.methods.values() if self.leaf is not None else ()
        return next((other.endpoint.error_dialect for other in others), None)

    def elapsed(self) -> float:
        return perf_counter() - self.began if self.seconds is None else self.seconds
