"""The pipeline that every HTTP request goes through, from its first header to our last byte."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal
from carrel.core.version import VERSION
from carrel.ports import CorruptContent, Ports
from carrel.server.http.api_docs import pages
from carrel.server.http.cookies import SAFE, SiteSettings
from carrel.server.http.endpoint import Endpoint, Headers, Request
from carrel.server.http.idempotency import HEADER, once
from carrel.server.http.metrics import Metrics
from carrel.server.http.problems import (
    TOO_SLOW,
    WRONG_METHOD,
    corrupt_response,
    internal_error_response,
    problem,
    refusal_response,
    unavailable_response,
)
from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_context import CompiledEndpoint, RequestContext, basic_to_bearer
from carrel.server.http.request_log import REQUEST_ID, RequestLog
from carrel.server.http.request_parsing import BodyLimits, ClientDisconnected, ReadTimeout, Receive
from carrel.server.http.response import EVENT_STREAM, Pairs, Response
from carrel.server.http.router import Router
from carrel.server.http.sse import HEARTBEAT, Send, Streams

Authenticate: TypeAlias = Callable[[Headers], Awaitable[Actor]]
"""Raises Unauthenticated. What it returns alone says whose things are asked for."""
App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_SANE_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_GUARDED: Final = re.compile(rb"/(?:v1|accounts)(?:/|$)")
"""Beneath it a stranger learns nothing, not even what is not there."""
_BODILESS: Final = frozenset({204, 304})
_PRIVATE: Final = (b"cache-control", b"private")


@dataclass(frozen=True, slots=True)
class Mount:
    """Another ASGI app that answers everything under a prefix, and looks at credentials itself."""

    prefix: str
    app: App


def create_app(  # noqa: PLR0913 - what wiring decides, all but the first three by name
    ports: Ports,
    endpoints: Sequence[Endpoint],
    authenticate: Authenticate,
    *,
    metrics: Metrics,
    tracer: Any = None,
    mounts: Sequence[Mount] = (),
    site: SiteSettings = SiteSettings(),
    limits: BodyLimits = BodyLimits(),
    closing: asyncio.Event | None = None,
) -> HttpApp:
    """An ASGI app. When ``closing`` is set, streams end, so that the server can drain."""
    told = [*endpoints, metrics.endpoint()]
    told += pages(told, "Carrel", VERSION)
    tracing = None
    if tracer is not None:
        from carrel.server.http.tracing import Tracing  # noqa: PLC0415 - nothing of it when off

        tracing = Tracing(tracer)
    app = HttpApp(ports, authenticate, site, metrics, tracing, closing or asyncio.Event())
    for endpoint in told:
        app.add(endpoint, limits)
    for mount in mounts:
        app.mount(mount)
    return app


class HttpApp:
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
        self._ports = ports
        self._check_credential = authenticate
        self._site = site
        self._metrics = metrics
        self._tracing = tracing
        self._log = RequestLog()
        self._routes: Router[CompiledEndpoint] = Router()
        self._mounts: list[Mount] = []
        self._streams = Streams(closing)
        self._patience = ReadTimeouts()
        self._unknown = metrics.meter("(unknown)", "*")
        self._process = ports.clock.new_id("req")
        self._count = 0

    def add(self, endpoint: Endpoint, limits: BodyLimits) -> None:
        meter = self._metrics.meter(endpoint.path, endpoint.method)
        self._routes.add(
            endpoint.method,
            endpoint.path,
            CompiledEndpoint(endpoint, meter, limits, self._patience),
        )

    def mount(self, mount: Mount) -> None:
        self._mounts.append(mount)
        self._mounts.sort(key=lambda known: len(known.prefix), reverse=True)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._non_http(scope["type"], receive, send)
        x = RequestContext(scope, receive, send)
        x.request_id = self._request_id(x.headers.get(b"x-request-id"))
        REQUEST_ID.set(x.request_id)
        found = self._routes.match(x.raw)
        if found is not None:
            x.leaf, x.values = found
            x.bound = x.leaf.methods.get(x.method)
        self._metrics.in_flight += 1
        try:
            if found is None and (mount := self._find_mount(x.raw)):
                await self._forward(mount, scope, x)
            elif self._tracing is None:
                await self._respond(x)
            else:
                await self._trace(x)
        finally:
            self._metrics.finished()
            self._record_request(x)

    def _request_id(self, given: bytes | None) -> str:
        if given is not None and _SANE_ID.fullmatch(given):
            return given.decode("ascii")
        self._count += 1
        return f"{self._process}-{self._count:x}"

    async def _respond(self, x: RequestContext) -> None:
        try:
            answer = await self._dispatch(x)
        except Exception as error:
            said = self._error_response(x, error)
            if said is None:
                return
            answer = said
        if (manner := x.manner) is not None:
            answer = manner.apply(answer)
        x.status = answer.status
        if answer.source is not None:
            await self._stream(x, answer)
            return
        body = b"" if x.method == "HEAD" else answer.body
        headers = _headers(x, answer)
        try:
            await x.send({"type": "http.response.start", "status": x.status, "headers": headers})
            await x.send({"type": "http.response.body", "body": body})
        except OSError:
            pass  # The client has left, and that is no error.

    def _error_response(self, x: RequestContext, error: Exception) -> Response | None:
        """What to answer to what was raised, if anybody is still there to be answered."""
        match error:
            case Refusal():
                return refusal_response(error)
            case ClientDisconnected():
                return None
            case ReadTimeout():
                close = [(b"connection", b"close")]
                return problem(TOO_SLOW, "the body took too long to arrive", headers=close)
            case CorruptContent():
                self._log.failure(x.request_id, error)
                return corrupt_response(str(error), x.request_id)
            case ConnectionError():
                self._log.failure(x.request_id, error)
                return unavailable_response(x.request_id)
            case _:
                self._log.failure(x.request_id, error)
                return internal_error_response(x.request_id)

    async def _dispatch(self, x: RequestContext) -> Response:
        bound = x.bound
        if bound is None:
            return await self._no_route(x)
        if not bound.public:
            x.actor = await self._authenticate(x)
            bound.authorize(x.actor)
        params = x.leaf.params(x.values) if x.values and x.leaf else {}
        call: Request[Any, Any] = Request(self._ports, x.actor, x.headers, params, x.request_id)
        call.https = x.https
        call.query = bound.query.read(x.query)
        endpoint = bound.endpoint
        if endpoint.body is not None:
            await bound.read(call, x)
        if endpoint.idempotent and (key := x.headers.get(HEADER)) is not None:
            return await once(endpoint, call, key, x.query)
        return await bound.run(call)

    def _authenticate(self, x: RequestContext) -> Awaitable[Actor]:
        """Raises Unauthenticated, and Forbidden for a cookie that may not be used like this."""
        shown = x.headers
        if x.bound is not None and x.bound.basic:
            shown = basic_to_bearer(shown)
        if b"cookie" in shown:
            shown = self._site.credential(shown, x.method, x.https)
        return self._check_credential(shown)

    async def _stream_while_authorized(
        self, x: RequestContext, source: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """What it gives, until the credential that it was asked for with opens nothing more."""
        try:
            async for chunk in source:
                try:
                    await self._authenticate(x)
                except Refusal:
                    return
                yield chunk
        finally:
            if (close := getattr(source, "aclose", None)) is not None:
                await close()

    async def _no_route(self, x: RequestContext) -> Response:
        """Nothing listens there, or not to that; a stranger is not told which."""
        if x.leaf is not None and x.method == "OPTIONS":
            return Response.empty(204, {"Allow": x.leaf.allow})
        if _GUARDED.match(x.raw):
            x.actor = await self._authenticate(x)
        if x.leaf is None:
            raise NotFound("there is nothing at this address")
        allow = [(b"allow", x.leaf.allow.encode("ascii"))]
        told = {"method": x.method, "allowedMethods": x.leaf.allow.split(", ")}
        return problem(WRONG_METHOD, f"this address knows {x.leaf.allow}", told, allow)

    async def _stream(self, x: RequestContext, answer: Response) -> None:
        """Streams are counted apart, and timed until they begin."""
        assert answer.source is not None
        x.seconds = x.elapsed()
        headers = [*answer.headers, (b"x-request-id", x.request_id.encode("ascii"))]
        await x.send({"type": "http.response.start", "status": x.status, "headers": headers})
        if x.method == "HEAD":
            await x.send({"type": "http.response.body", "body": b""})
            return
        kind = answer.header(b"content-type")
        heartbeat = HEARTBEAT if kind == EVENT_STREAM.encode() else None
        self._metrics.in_flight -= 1
        self._metrics.open_streams += 1
        try:
            source = (
                answer.source
                if x.actor is None
                else self._stream_while_authorized(x, answer.source)
            )
            await self._streams.pour(source, x.receive, x.send, heartbeat)
        except Exception as error:
            self._log.failure(x.request_id, error)
        finally:
            self._metrics.in_flight += 1
            self._metrics.open_streams -= 1

    async def _trace(self, x: RequestContext) -> None:
        with self._tracing.span(x.method, x.route, x.headers) as span:
            await self._respond(x)
            self._tracing.answered(span, x.status, x.actor.tenant if x.actor else None)

    def _record_request(self, x: RequestContext) -> None:
        seconds = x.elapsed()
        (x.bound.meter if x.bound else self._unknown).observe(x.status, seconds)
        log = self._log
        worth = x.method not in SAFE or x.status >= 400 or seconds > log.slow
        if log.reads or (worth and log.writes):
            log.request(
                logging.INFO if worth else logging.DEBUG,
                x.request_id,
                method=x.method,
                route=x.route,
                status=x.status,
                ms=round(seconds * 1000, 2),
                tenant=x.actor.tenant if x.actor else None,
            )

    def _find_mount(self, raw: bytes) -> Mount | None:
        if _GUARDED.match(raw):
            return None
        whole = raw.decode("latin-1") + "/"
        return next((m for m in self._mounts if whole.startswith(m.prefix.rstrip("/") + "/")), None)

    async def _forward(self, mount: Mount, scope: Any, x: RequestContext) -> None:
        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                x.status = message["status"]
                name = (b"x-request-id", x.request_id.encode("ascii"))
                message = {**message, "headers": [*message.get("headers", ()), name]}
            await x.send(message)

        root = scope.get("root_path", "") + mount.prefix.rstrip("/")
        try:
            await mount.app({**scope, "root_path": root}, x.receive, send)
        except Exception as error:
            self._log.failure(x.request_id, error)
            if x.status == 0:
                answer = internal_error_response(x.request_id)
                start = {"type": "http.response.start", "status": answer.status}
                await send({**start, "headers": answer.headers})
                await send({"type": "http.response.body", "body": answer.body})

    async def _non_http(self, kind: str, receive: Receive, send: Send) -> None:
        """A server's start and stop; and the only thing said to a websocket, which is goodbye."""
        if kind == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        while kind == "lifespan":
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self.closing.set()
                return await send({"type": "lifespan.shutdown.complete"})
            await send({"type": "lifespan.startup.complete"})


def _headers(x: RequestContext, answer: Response) -> Pairs:
    headers = [*answer.headers, (b"x-request-id", x.request_id.encode("ascii"))]
    if b"cookie" in x.headers and answer.header(b"cache-control") is None:
        headers.append(_PRIVATE)  # What is shown to a session is for no cache between.
    if answer.status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    return headers
