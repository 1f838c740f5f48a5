"""In-process dispatch of requests: no ASGI, sockets, metrics or log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal
from carrel.core.lru_cache import LruCache
from carrel.core.outages import StorageFull
from carrel.ports import CorruptContent, Ports, request_scope
from carrel.server.http.endpoint import Endpoint, Headers, Request
from carrel.server.http.error_responses import failure_response, refusal_response
from carrel.server.http.idempotency import idempotency_key_value, respond_once
from carrel.server.http.metrics import RouteHistogram
from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_context import CompiledEndpoint
from carrel.server.http.request_parsing import BodyLimits, body_too_large
from carrel.server.http.response import Response
from carrel.server.http.response_cache import AppCaches
from carrel.server.http.router import Router

_MAX_CACHED_ROUTES: Final = 4096

Route = tuple[CompiledEndpoint, dict[str, str]]


class LocalApp:
    """The endpoints of a server for callers in the same process, which pass an actor."""

    def __init__(self, ports: Ports, endpoints: Sequence[Endpoint]) -> None:
        self._ports = ports
        self._caches = AppCaches()
        self._router: Router[CompiledEndpoint] = Router()
        self._routes: LruCache[tuple[str, bytes], Route] = LruCache(_MAX_CACHED_ROUTES)
        limits, timeouts = BodyLimits(), ReadTimeouts()
        for endpoint in endpoints:
            histogram = RouteHistogram(endpoint.path, endpoint.method)
            compiled = CompiledEndpoint(endpoint, histogram, limits, timeouts)
            self._router.add(endpoint.method, endpoint.path, compiled)

    async def respond(
        self,
        actor: Actor,
        target: tuple[str, bytes],
        query: bytes,
        headers: Headers,
        body: bytes | AsyncIterator[bytes],
    ) -> Response:
        """Response to a method and a percent-encoded path.

        Refusals and corrupt content are responses as over HTTP; other errors are raised.
        """
        compiled = None
        token = request_scope.begin()
        try:
            compiled, params = self._routes.get(target) or self._find_route(target)
            if not compiled.public:
                compiled.authorize(actor)
            request: Request[Any, Any] = Request(
                self._ports, actor, headers, params, "", self._caches
            )
            request.query = compiled.query.read(query)
            request.is_head = target[0] == "HEAD"
            endpoint = compiled.endpoint
            if endpoint.body is not None:
                await _read_body(compiled, request, body)
            if (key := idempotency_key_value(endpoint, request)) is not None:
                response = await respond_once(endpoint, request, key, query)
            else:
                response = await compiled.run(request)
        except Refusal as refusal:
            response = refusal_response(refusal)
        except (CorruptContent, ConnectionError, StorageFull) as error:
            response = failure_response(error, self._ports.clock.new_id("req"))
        finally:
            request_scope.end(token)
        dialect = compiled.error_dialect if compiled else None
        return response if dialect is None else dialect.apply(response)

    def _find_route(self, target: tuple[str, bytes]) -> Route:
        """Match a path. Raises NotFound and ValidationError."""
        method, path = target
        match = self._router.match(path)
        compiled = match[0].methods.get(method) if match else None
        if match is None or compiled is None:
            raise NotFound("no such endpoint")
        params = match[0].params(match[1]) if match[1] else {}
        self._routes.put(target, (compiled, params))
        return compiled, params


async def _read_body(
    compiled: CompiledEndpoint, request: Request[Any, Any], body: bytes | AsyncIterator[bytes]
) -> None:
    """Raises PayloadTooLarge or WorkspaceTooLarge, and ValidationError."""
    if compiled.takes_bytes(request.headers):
        parts = _as_parts(body) if isinstance(body, bytes) else body
        await compiled.receive_bytes(request, parts)
        return
    if not isinstance(body, bytes):
        body = b"".join([part async for part in body])
    if len(body) > compiled.max_body_bytes:
        raise body_too_large(compiled.max_body_bytes, compiled.endpoint.body_too_large)
    request.raw_body = body
    request.body = body if compiled.body is None else compiled.body.read(body, request.headers)


async def _as_parts(body: bytes) -> AsyncIterator[bytes]:
    yield body
