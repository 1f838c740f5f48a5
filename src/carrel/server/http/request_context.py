"""State of one request in the pipeline, and endpoints prepared for it."""

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
from carrel.server.http.router import RawValues, RouteEntry
from carrel.server.http.sse_transport import Send


class CompiledEndpoint:
    """An endpoint with its parsers and limits prepared at startup."""

    __slots__ = (
        "basic_auth",
        "body",
        "endpoint",
        "error_dialect",
        "histogram",
        "limits",
        "max_body_bytes",
        "public",
        "query",
        "read_timeouts",
        "run",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        histogram: RouteHistogram,
        limits: BodyLimits,
        read_timeouts: ReadTimeouts,
    ) -> None:
        self.endpoint = endpoint
        self.run = endpoint.run
        self.public = endpoint.public
        self.error_dialect = endpoint.error_dialect
        self.basic_auth = endpoint.error_dialect is not None and endpoint.error_dialect.basic_auth
        """Whether a token is accepted as Basic auth password."""
        self.histogram = histogram
        self.limits = limits
        self.read_timeouts = read_timeouts
        self.query = QueryReader(endpoint.query, endpoint.allow_unknown_query)
        self.body = None if endpoint.body in (None, bytes) else BodyReader(endpoint.body)
        self.max_body_bytes = limits.max_bytes if endpoint.max_body is None else endpoint.max_body

    def authorize(self, actor: Actor) -> None:
        """Raise Forbidden if the actor lacks the permission or is of the wrong kind."""
        endpoint = self.endpoint
        if endpoint.permission is not None:
            actor.require(endpoint.permission)
        if endpoint.platform is not actor.platform and endpoint.platform is not None:
            raise Forbidden("this kind of credential cannot call this endpoint")

    async def read_body(self, request: Request[Any, Any], ctx: RequestContext) -> None:
        """Read and decode the body.

        Raises ValidationError, PayloadTooLarge or WorkspaceTooLarge, ReadTimeout or
        ClientDisconnected.
        """
        headers = ctx.headers
        request.raw_body = await read_body(
            ctx.receive,
            headers,
            self.max_body_bytes,
            self.limits,
            self.read_timeouts,
            self.endpoint.body_too_large,
        )
        request.body = (
            request.raw_body if self.body is None else self.body.read(request.raw_body, headers)
        )


def basic_to_bearer(headers: Headers) -> Headers:
    """Headers with the Basic auth password as bearer token; the user is ignored."""
    scheme, _, encoded = headers.get(b"authorization", b"").strip().partition(b" ")
    if scheme.lower() != b"basic":
        return headers
    try:
        _, _, password = b64decode(encoded.strip(), validate=True).partition(b":")
    except ValueError:
        password = b""
    return {**headers, b"authorization": b"Bearer " + password}


class RequestContext:
    """One request and its processing state."""

    # Class-level defaults: a request sets only the two or three attributes that differ.
    route_entry: RouteEntry[CompiledEndpoint] | None = None
    values: RawValues = ()
    compiled: CompiledEndpoint | None = None
    actor: Actor | None = None
    status: int = 0
    """0 until there is a response; stays 0 if the client disconnected before."""
    elapsed_seconds: float | None = None
    """Fixed duration, set when a stream starts; None: measure until now."""
    request_id: str = ""

    def __init__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.start_time = perf_counter()
        self.method: str = scope["method"]
        self.raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
        self.query: bytes = scope["query_string"]
        self.https = scope.get("scheme") == "https"
        pairs = scope["headers"]
        headers: Headers = dict(pairs)
        self.headers = headers if len(headers) == len(pairs) else merge_headers(pairs)
        self.receive = receive
        self.send = send

    @property
    def route(self) -> str:
        return "(unknown)" if self.route_entry is None else self.route_entry.template

    @property
    def error_dialect(self) -> ErrorDialect | None:
        """Error dialect of this path, or None for the default."""
        if self.compiled is not None:
            return self.compiled.error_dialect
        endpoints = self.route_entry.methods.values() if self.route_entry is not None else ()
        return next((compiled.endpoint.error_dialect for compiled in endpoints), None)

    def measure_elapsed(self) -> float:
        return (
            perf_counter() - self.start_time
            if self.elapsed_seconds is None
            else self.elapsed_seconds
        )
