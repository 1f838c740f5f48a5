"""A world with its REST face and its background work: what a server process runs."""

from __future__ import annotations

import asyncio
import gc
import hmac
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import FrameType
from typing import Any

from carrel.actions.accounts import credentials, oidc
from carrel.core.access import PLATFORM, Actor
from carrel.core.errors import Unauthenticated
from carrel.ports import Ports
from carrel.server.graphql import http
from carrel.server.http.app import HttpApp, create_app
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Endpoint, Headers
from carrel.server.http.metrics import Metrics
from carrel.server.http.request_log import configure
from carrel.server.mcp import http as mcp_http
from carrel.server.rest.accounts import browser_oidc, browser_session
from carrel.server.rest.files import conformance
from carrel.server.web import http as web_http
from carrel.settings import Settings
from carrel.wiring.background import background
from carrel.wiring.oidc import code_flow_of, issuer_of
from carrel.wiring.ports import open_world
from carrel.wiring.rest_endpoints import REST_ENDPOINTS
from carrel.wiring.store_metrics import watch


def endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """Everything that this server answers to."""
    test_seam = conformance.ENDPOINTS if settings.test_seam else ()
    told = (*REST_ENDPOINTS, *web_http.ENDPOINTS, *test_seam)
    site = site_of(settings)
    doors = browser_session.endpoints(site) + browser_oidc.endpoints(site, code_flow_of(settings))
    return told + doors + http.endpoints(settings.graphql_depth, settings.graphql_cost)


def site_of(settings: Settings) -> SiteSettings:
    return SiteSettings(settings.public_url)


def authenticator(ports: Ports, settings: Settings) -> Callable[[Headers], Awaitable[Actor]]:
    of_token = _by_token(ports, settings)

    def authenticate(headers: Headers) -> Awaitable[Actor]:
        """By the Authorization, else by a service's own lane of x-api-key and x-tenant-id."""
        if b"x-api-key" in headers or b"x-tenant-id" in headers:
            return of_service(headers)
        return of_token(_token(headers.get(b"authorization", b"")))

    async def of_service(headers: Headers) -> Actor:
        """One that names its tenant in vain is not asked for another key: it contradicts itself."""
        key, named = headers.get(b"x-api-key"), headers.get(b"x-tenant-id")
        tenant = (named or b"").decode("latin-1").strip()
        try:
            actor = await of_token(_token(headers.get(b"authorization", b"")))
        except Unauthenticated:
            if key is None:
                raise
            return await credentials.authenticate_service(ports, key.decode("latin-1"), tenant)
        if named is not None:
            await credentials.refuse_contradiction(ports, actor, tenant)
        return actor

    return authenticate


def _by_token(ports: Ports, settings: Settings) -> Callable[[str], Awaitable[Actor]]:
    """Raises Unauthenticated, at once or when it is awaited."""
    platform = credentials.hash_of(settings.platform_token) if settings.platform_token else ""
    issuer = issuer_of(settings)

    def of_token(token: str) -> Awaitable[Actor]:
        if not token:
            raise Unauthenticated(credentials.UNKNOWN)
        if platform and hmac.compare_digest(credentials.hash_of(token), platform):
            return _platform()
        if issuer is not None and oidc.is_jwt(token):
            return oidc.person_of(ports, issuer, token)
        return credentials.authenticate(ports, token)

    return of_token


async def _platform() -> Actor:
    return PLATFORM


def _token(header: bytes) -> str:
    """What an Authorization header carries, with the word Bearer before it or without any."""
    given = header.decode("latin-1").strip()
    if given.startswith("Bearer ") or given[:7].lower() == "bearer ":
        return given[7:].strip()
    return "" if " " in given else given


class Server:
    """The ASGI app of one server process: it opens its world at the start, closes it at the end."""

    def __init__(
        self,
        settings: Settings,
        metrics_directory: str | None = None,
        more: Sequence[Endpoint] = (),
    ) -> None:
        self._settings = settings
        self._more = tuple(more)
        self._metrics = Metrics(metrics_directory)
        self._stack = AsyncExitStack()
        self._app: HttpApp | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            self._app = await self._stack.enter_async_context(
                run_app(self._settings, self._metrics, self._more)
            )
            install_stop_handlers(self._app.closing)
        except Exception as problem:
            await self._stack.aclose()
            await send({"type": "lifespan.startup.failed", "message": str(problem)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def install_stop_handlers(closing: asyncio.Event) -> None:
    """End streams as soon as a signal comes, since the server then waits for all that is open."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)

        def stop(got: int, frame: FrameType | None, before: Any = before) -> None:
            loop.call_soon_threadsafe(closing.set)
            if callable(before):
                before(got, frame)

        with suppress(ValueError):  # signals belong to the main thread; elsewhere nobody sends one
            signal.signal(number, stop)


@asynccontextmanager
async def run_app(
    settings: Settings, metrics: Metrics, more: tuple[Endpoint, ...] = ()
) -> AsyncIterator[HttpApp]:
    """The REST face over an open world, with its background work going on."""
    configure(settings.log_level)
    closing = asyncio.Event()
    async with open_world(settings) as opened:
        watch(metrics, opened)
        known = authenticator(opened.ports, settings)
        site = site_of(settings)
        async with mcp_http.mounted(opened.ports, known, closing, site) as mount:
            app = create_app(
                opened.ports,
                endpoints(settings) + more,
                known,
                metrics=metrics,
                tracer=_tracer(settings),
                mounts=(mount, *web_http.MOUNTS),
                site=site,
                closing=closing,
            )
            _tune_gc()
            async with background(opened, closing):
                yield app


def _tune_gc() -> None:
    """Keep Python from looking for garbage among what lives as long as the server does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def _tracer(settings: Settings) -> Any:
    if not settings.otel:
        return None
    from carrel.wiring.tracing import tracer  # noqa: PLC0415 - an extra, imported where asked for

    return tracer()
