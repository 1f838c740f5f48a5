"""ASGI application: routes, authenticates, runs and records every HTTP request."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal
from carrel.core.version import VERSION
from carrel.ports import Ports, request_scope
from carrel.ports.attempt_limiter import CLIENT_ADDRESS
from carrel.server.http.api_docs import documentation_endpoints
from carrel.server.http.cookies import SAFE_METHODS, SiteSettings
from carrel.server.http.cross_origin import CrossOriginAccess
from carrel.server.http.endpoint import Endpoint, Headers, Request
from carrel.server.http.error_responses import (
    METHOD_NOT_ALLOWED,
    REQUEST_TIMEOUT,
    failure_response,
    problem_response,
    refusal_response,
)
from carrel.server.http.idempotency import idempotency_key_value, respond_once
from carrel.server.http.metrics import Metrics
from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_context import CompiledEndpoint, RequestContext, basic_to_bearer
from carrel.server.http.request_log import REQUEST_ID, RequestLog
from carrel.server.http.request_parsing import BodyLimits, ClientDisconnected, ReadTimeout, Receive
from carrel.server.http.response import EVENT_STREAM, NO_SNIFFING, HeaderPairs, Response
from carrel.server.http.response_cache import AppCaches
from carrel.server.http.router import Router
from carrel.server.http.sse_transport import HEARTBEAT, Send, Streams

Authenticate: TypeAlias = Callable[[Headers], Awaitable[Actor]]
"""Authenticates headers; raises Unauthenticated. Only its result names the tenant."""
AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_VALID_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_AUTHENTICATED_PATH: Final = re.compile(rb"/(?:v1|accounts)(?:/|$)")
"""Below these prefixes even a 404 requires a credential."""
_REQUEST_IDS_AT_ONCE: Final = 256
_NO_BODY_STATUSES: Final = frozenset({204, 304})
_CACHE_PRIVATE: Final = (b"cache-control", b"private")


@dataclass(frozen=True, slots=True)
class Mount:
    """An ASGI app that serves every path below a prefix and authenticates by itself."""

    prefix: str
    app: AsgiApp


def create_app(  # noqa: PLR0913 - options of the composition root, keyword-only
    ports: Ports,
    endpoints: Sequence[Endpoint],
    authenticate: Authenticate,
    *,
    metrics: Metrics,
    tracer: Any = None,
    mounts: Sequence[Mount] = (),
    site: SiteSettings = SiteSettings(),
    cross_origin: CrossOriginAccess = CrossOriginAccess(),
    limits: BodyLimits = BodyLimits(),
    closing: asyncio.Event | None = None,
) -> HttpApp:
    """Build the ASGI app. Setting `closing` ends all streams, to drain the server."""
    all_endpoints = [*endpoints, metrics.endpoint()]
    all_endpoints += documentation_endpoints(all_endpoints, "Carrel", VERSION)
    tracing = None
    if tracer is not None:
        from carrel.server.http.tracing import Tracing  # noqa: PLC0415 - optional dependency

        tracing = Tracing(tracer)
    app = HttpApp(ports, authenticate, site, metrics, tracing, closing or asyncio.Event())
    app.cross_origin = cross_origin
    for endpoint in all_endpoints:
        app.add(endpoint, limits)
    for mount in mounts:
        app.mount(mount)
    return app


class HttpApp:
    """ASGI application over a router of endpoints, with mounted apps for other paths."""

    def __init__(
        self,
        ports: Ports,
        authenticate: Authenticate,
        site: SiteSettings,
        metrics: Metrics,
        tracing: Any,
        closing: asyncio.Event,
    ) -> None:
        self.closing = closing
        self.caches = AppCaches()
        self.cross_origin = CrossOriginAccess()
        self._ports = ports
        self._check_credential = authenticate
        self._site = site
        self._metrics = metrics
        self._tracing = tracing
        self._log = RequestLog()
        self._request_ids = _random_request_ids()
        self._routes: Router[CompiledEndpoint] = Router()
        self._mounts: list[Mount] = []
        self.not_found_page: Callable[[], Response] | None = None
        """Response to a browser that opens an unknown path."""
        self._streams = Streams(closing)
        self._read_timeouts = ReadTimeouts()
        self._unmatched_histogram = metrics.add_route("(unknown)", "*")

    def add(self, endpoint: Endpoint, limits: BodyLimits) -> None:
        histogram = self._metrics.add_route(endpoint.path, endpoint.method)
        self._routes.add(
            endpoint.method,
            endpoint.path,
            CompiledEndpoint(endpoint, histogram, limits, self._read_timeouts),
        )

    def mount(self, mount: Mount) -> None:
        self._mounts.append(mount)
        self._mounts.sort(key=lambda mounted: len(mounted.prefix), reverse=True)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._non_http(scope["type"], receive, send)
        ctx = RequestContext(scope, receive, send)
        if self.cross_origin.origins:
            ctx.send = self.cross_origin.sender(send, ctx.headers)
        ctx.request_id = self._request_id(ctx.headers.get(b"x-request-id"))
        REQUEST_ID.set(ctx.request_id)
        CLIENT_ADDRESS.set(client[0] if (client := scope.get("client")) else "")
        match = self._routes.match(ctx.raw_path)
        if match is not None:
            ctx.route_entry, ctx.values = match
            ctx.compiled = ctx.route_entry.methods.get(ctx.method)
        self._metrics.in_flight += 1
        try:
            if preflight := self.cross_origin.preflight(ctx.method, ctx.headers):
                await self._send(ctx, preflight)
            elif match is None and (mount := self._find_mount(ctx.raw_path)):
                await self._forward(mount, scope, ctx)
            elif self._tracing is None:
                await self._respond(ctx)
            else:
                await self._trace(ctx)
        finally:
            self._metrics.request_finished()
            self._record_request(ctx)

    def _request_id(self, header_value: bytes | None) -> str:
        """Id from the header, or a random one: a counter would tell how busy others are."""
        if header_value is not None and _VALID_REQUEST_ID.fullmatch(header_value):
            return header_value.decode("ascii")
        return next(self._request_ids)

    async def _respond(self, ctx: RequestContext) -> None:
        token = request_scope.begin(ctx.receive)
        try:
            response = await self._dispatch(ctx)
        except Exception as error:
            error_response = self._error_response(ctx, error)
            if error_response is None:
                return
            response = error_response
        finally:
            request_scope.end(token)
        if (dialect := ctx.error_dialect) is not None:
            response = dialect.apply(response, ctx.request_id)
        await self._send(ctx, response)

    async def _send(self, ctx: RequestContext, response: Response) -> None:
        ctx.status = response.status
        if response.source is not None:
            await self._stream(ctx, response)
            return
        body = b"" if ctx.method == "HEAD" else response.body
        headers = _response_headers(ctx, response)
        try:
            await ctx.send(
                {"type": "http.response.start", "status": ctx.status, "headers": headers}
            )
            await ctx.send({"type": "http.response.body", "body": body})
        except OSError:
            pass  # The client disconnected; this is not an error.

    def _error_response(self, ctx: RequestContext, error: Exception) -> Response | None:
        """Response for a raised exception, or None if the client disconnected."""
        match error:
            case Refusal():
                return refusal_response(error)
            case ClientDisconnected():
                return None
            case ReadTimeout():
                close = [(b"connection", b"close")]
                return problem_response(
                    REQUEST_TIMEOUT, "timed out reading the request body", headers=close
                )
            case _:
                self._log.failure(ctx.request_id, error)
                return failure_response(error, ctx.request_id)

    async def _dispatch(self, ctx: RequestContext) -> Response:
        compiled = ctx.compiled
        if compiled is None:
            return await self._no_route(ctx)
        if not compiled.public:
            ctx.actor = await self._authenticate(ctx)
            compiled.authorize(ctx.actor)
        params = ctx.route_entry.params(ctx.values) if ctx.values and ctx.route_entry else {}
        request: Request[Any, Any] = Request(
            self._ports, ctx.actor, ctx.headers, params, ctx.request_id, self.caches
        )
        request.https, request.is_head = ctx.https, ctx.method == "HEAD"
        request.query = compiled.query.read(ctx.query)
        endpoint = compiled.endpoint
        if endpoint.body is not None:
            await compiled.read_body(request, ctx)
        if (key := idempotency_key_value(endpoint, request)) is not None:
            return await respond_once(endpoint, request, key, ctx.query)
        return await compiled.run(request)

    def _authenticate(self, ctx: RequestContext) -> Awaitable[Actor]:
        """Authenticate the request.

        Raises Unauthenticated, or Forbidden if a session cookie fails the CSRF or origin check.
        """
        headers = ctx.headers
        if ctx.compiled is not None and ctx.compiled.basic_auth:
            headers = basic_to_bearer(headers)
        if b"cookie" in headers:
            headers = self._site.with_session_token(headers, ctx.method, ctx.https)
        return self._check_credential(headers)

    async def _stream_while_authorized(
        self, ctx: RequestContext, source: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Yield from `source`; authenticate before each chunk and stop when that fails."""
        try:
            async for chunk in source:
                try:
                    await self._authenticate(ctx)
                except Refusal:
                    return
                yield chunk
        finally:
            if (close := getattr(source, "aclose", None)) is not None:
                await close()

    async def _no_route(self, ctx: RequestContext) -> Response:
        """Respond to an unknown path (404) or method (405)."""
        if ctx.route_entry is not None and ctx.method == "OPTIONS":
            return Response.empty(204, {"Allow": ctx.route_entry.allow})
        if _AUTHENTICATED_PATH.match(ctx.raw_path):
            ctx.actor = await self._authenticate(ctx)
        if ctx.route_entry is None:
            if self.not_found_page is not None and _is_page_request(ctx):
                return self.not_found_page()
            raise NotFound("no such endpoint")
        allow = [(b"allow", ctx.route_entry.allow.encode("ascii"))]
        details = {"method": ctx.method, "allowedMethods": ctx.route_entry.allow.split(", ")}
        return problem_response(
            METHOD_NOT_ALLOWED,
            f"method not allowed; allowed: {ctx.route_entry.allow}",
            details,
            allow,
        )

    async def _stream(self, ctx: RequestContext, response: Response) -> None:
        """Send a streaming response. Its duration is measured until the first byte."""
        assert response.source is not None
        ctx.elapsed_seconds = ctx.measure_elapsed()
        headers = [*response.headers, *_common_headers(ctx)]
        await ctx.send({"type": "http.response.start", "status": ctx.status, "headers": headers})
        if ctx.method == "HEAD":
            await ctx.send({"type": "http.response.body", "body": b""})
            return
        media_type = response.header(b"content-type")
        heartbeat = HEARTBEAT if media_type == EVENT_STREAM.encode() else None
        self._metrics.in_flight -= 1
        self._metrics.open_streams += 1
        try:
            source = (
                response.source
                if ctx.actor is None
                else self._stream_while_authorized(ctx, response.source)
            )
            await self._streams.forward(source, ctx.receive, ctx.send, heartbeat)
        except Exception as error:
            self._log.failure(ctx.request_id, error)
        finally:
            self._metrics.in_flight += 1
            self._metrics.open_streams -= 1

    async def _trace(self, ctx: RequestContext) -> None:
        with self._tracing.span(ctx.method, ctx.route, ctx.headers) as span:
            await self._respond(ctx)
            self._tracing.record_response(span, ctx.status, ctx.actor.tenant if ctx.actor else None)

    def _record_request(self, ctx: RequestContext) -> None:
        seconds = ctx.measure_elapsed()
        (ctx.compiled.histogram if ctx.compiled else self._unmatched_histogram).observe(
            ctx.status, seconds
        )
        log = self._log
        is_notable = (
            ctx.method not in SAFE_METHODS or ctx.status >= 400 or seconds > log.slow_seconds
        )
        if log.logs_reads or (is_notable and log.logs_writes):
            log.request(
                logging.INFO if is_notable else logging.DEBUG,
                ctx.request_id,
                method=ctx.method,
                route=ctx.route,
                status=ctx.status,
                ms=round(seconds * 1000, 2),
                tenant=ctx.actor.tenant if ctx.actor else None,
            )

    def _find_mount(self, raw_path: bytes) -> Mount | None:
        if _AUTHENTICATED_PATH.match(raw_path):
            return None
        path = raw_path.decode("latin-1") + "/"
        return next((m for m in self._mounts if path.startswith(m.prefix.rstrip("/") + "/")), None)

    async def _forward(self, mount: Mount, scope: Any, ctx: RequestContext) -> None:
        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                ctx.status = message["status"]
                headers = [*message.get("headers", ()), *_common_headers(ctx)]
                message = {**message, "headers": headers}
            await ctx.send(message)

        root = scope.get("root_path", "") + mount.prefix.rstrip("/")
        try:
            await mount.app({**scope, "root_path": root}, ctx.receive, send)
        except Exception as error:
            self._log.failure(ctx.request_id, error)
            if ctx.status == 0:
                response = failure_response(error, ctx.request_id)
                start = {"type": "http.response.start", "status": response.status}
                await send({**start, "headers": response.headers})
                await send({"type": "http.response.body", "body": response.body})

    async def _non_http(self, scope_type: str, receive: Receive, send: Send) -> None:
        """Handle ASGI lifespan events; close websockets, which are not supported."""
        if scope_type == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        while scope_type == "lifespan":
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self.closing.set()
                return await send({"type": "lifespan.shutdown.complete"})
            await send({"type": "lifespan.startup.complete"})


def _random_request_ids() -> Iterator[str]:
    """Ids of 96 random bits; the system is asked for many at once."""
    while True:
        digits = secrets.token_hex(12 * _REQUEST_IDS_AT_ONCE)
        for start in range(0, len(digits), 24):
            yield f"req_{digits[start : start + 24]}"


def _common_headers(ctx: RequestContext) -> HeaderPairs:
    """Headers of every response."""
    return [(b"x-request-id", ctx.request_id.encode("ascii")), NO_SNIFFING]


def _response_headers(ctx: RequestContext, response: Response) -> HeaderPairs:
    headers = [*response.headers, *_common_headers(ctx)]
    if b"cookie" in ctx.headers and response.header(b"cache-control") is None:
        headers.append(
            _CACHE_PRIVATE
        )  # Shared caches must not store responses to a browser session.
    if response.status not in _NO_BODY_STATUSES:
        headers.append((b"content-length", b"%d" % len(response.body)))
    return headers


def _is_page_request(ctx: RequestContext) -> bool:
    """Whether a browser opens a page; paths of the API have JSON."""
    accept = ctx.headers.get(b"accept", b"")
    is_read = ctx.method in {"GET", "HEAD"}
    return is_read and b"text/html" in accept and not _AUTHENTICATED_PATH.match(ctx.raw_path)
