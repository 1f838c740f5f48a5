"""ASGI app of a server process: ports, REST API, mounts and background work."""

from __future__ import annotations

import asyncio
import gc
import hmac
import multiprocessing
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
from carrel.server.http.cross_origin import CrossOriginAccess, is_origin
from carrel.server.http.endpoint import Endpoint, Headers
from carrel.server.http.metrics import Metrics
from carrel.server.http.request_log import configure
from carrel.server.http.request_parsing import parse_bearer_token
from carrel.server.mcp import http as mcp_http
from carrel.server.rest.accounts import browser_oidc, browser_session, invitations
from carrel.server.rest.agents import connections
from carrel.server.rest.files import conformance
from carrel.server.web import http as web_http
from carrel.settings import Settings, SettingsError
from carrel.wiring.background import background_work
from carrel.wiring.oidc import create_code_flow, create_issuer
from carrel.wiring.ports import open_ports
from carrel.wiring.rest_endpoints import REST_ENDPOINTS
from carrel.wiring.store_metrics import observe_store


def endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """All endpoints of this server."""
    test_seam = conformance.ENDPOINTS if settings.test_seam else ()
    api_endpoints = (*REST_ENDPOINTS, *web_http.ENDPOINTS, *test_seam)
    site = site_settings(settings)
    browser_endpoints = (
        *invitations.endpoints(site),
        *connections.endpoints(site),
        *browser_session.endpoints(site),
        *browser_oidc.endpoints(site, create_code_flow(settings)),
    )
    return (
        api_endpoints
        + browser_endpoints
        + http.endpoints(settings.graphql_depth, settings.graphql_cost)
    )


def site_settings(settings: Settings) -> SiteSettings:
    hosts = _split_names(f"{settings.host},{settings.allowed_hosts}")
    origins = _split_names(f"{settings.allowed_origins},{settings.cors_origins}")
    return SiteSettings(settings.public_url, hosts, origins)


def cross_origin_access(settings: Settings) -> CrossOriginAccess:
    """Origins of web pages that may read responses. Raises SettingsError."""
    origins = _split_names(settings.cors_origins)
    for origin in sorted(origins):
        if not is_origin(origin):
            raise SettingsError(
                f"CARREL_CORS_ORIGINS: {origin} is not an origin such as https://app.example.com"
            )
    return CrossOriginAccess(origins)


def _split_names(text: str) -> frozenset[str]:
    return frozenset(name.strip().lower().rstrip("/") for name in text.split(",")) - {""}


def authenticator(ports: Ports, settings: Settings) -> Callable[[Headers], Awaitable[Actor]]:
    by_token = _token_authenticator(ports, settings)

    def authenticate(headers: Headers) -> Awaitable[Actor]:
        """Authenticate by Authorization, or as a service or agent by x-api-key."""
        if b"x-api-key" in headers or b"x-tenant-id" in headers:
            return by_service(headers)
        return by_token(parse_bearer_token(headers))

    async def by_service(headers: Headers) -> Actor:
        """Authenticate by a key; a tenant header that contradicts the key is refused."""
        key, tenant_header = headers.get(b"x-api-key"), headers.get(b"x-tenant-id")
        tenant = None if tenant_header is None else tenant_header.decode("latin-1").strip()
        try:
            actor = await by_token(parse_bearer_token(headers))
        except Unauthenticated:
            if key is None:
                raise
            token = key.decode("latin-1")
            caller = await ports.attempts.limit(
                token, lambda: credentials.authenticate(ports, token)
            )
            await credentials.require_machine(ports, caller, tenant)
            return caller
        if tenant is not None:
            await credentials.require_own_tenant(ports, actor, tenant)
        return actor

    return authenticate


def _token_authenticator(ports: Ports, settings: Settings) -> Callable[[str], Awaitable[Actor]]:
    """Return the token check. It raises Unauthenticated or TooManyAttempts."""
    platform = credentials.hash_token(settings.platform_token) if settings.platform_token else ""
    issuer = create_issuer(settings)

    def by_token(token: str) -> Awaitable[Actor]:
        return ports.attempts.limit(token, lambda: check(token))

    def check(token: str) -> Awaitable[Actor]:
        if not token:
            raise Unauthenticated(credentials.INVALID_CREDENTIAL)
        if platform and hmac.compare_digest(credentials.hash_token(token), platform):
            return _platform_actor()
        if issuer is not None and oidc.is_jwt(token):
            return oidc.authenticate_person(ports, issuer, token)
        return credentials.authenticate(ports, token)

    return by_token


async def _platform_actor() -> Actor:
    return PLATFORM


class ServerApp:
    """ASGI app that opens the ports at startup and closes them at shutdown."""

    def __init__(
        self,
        settings: Settings,
        metrics_directory: str | None = None,
        extra_endpoints: Sequence[Endpoint] = (),
    ) -> None:
        self._settings = settings
        self._extra_endpoints = tuple(extra_endpoints)
        metrics_token = settings.metrics_token or settings.platform_token
        self._metrics = Metrics(metrics_directory, metrics_token)
        self._stack = AsyncExitStack()
        self._app: HttpApp | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            self._app = await self._stack.enter_async_context(
                run_app(self._settings, self._metrics, self._extra_endpoints)
            )
            install_stop_handlers(self._app.closing)
            stop_with_parent()
        except Exception as problem:
            await self._stack.aclose()
            await send({"type": "lifespan.startup.failed", "message": str(problem)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def install_stop_handlers(closing: asyncio.Event) -> None:
    """Close event streams on SIGINT and SIGTERM, since shutdown waits for them."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        previous = signal.getsignal(number)

        def stop(signal_number: int, frame: FrameType | None, previous: Any = previous) -> None:
            loop.call_soon_threadsafe(closing.set)
            if callable(previous):
                previous(signal_number, frame)

        with suppress(ValueError):  # only the main thread may install handlers
            signal.signal(number, stop)


def stop_with_parent() -> None:
    """Stop this worker process when its parent ends, even by SIGKILL or before this call."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.remove_reader(parent.sentinel)
            signal.raise_signal(signal.SIGTERM)

        loop.add_reader(parent.sentinel, stop)


@asynccontextmanager
async def run_app(
    settings: Settings, metrics: Metrics, extra_endpoints: tuple[Endpoint, ...] = ()
) -> AsyncIterator[HttpApp]:
    """Open the ports and yield the HTTP app while its background work runs."""
    configure(settings.log_level)
    closing = asyncio.Event()
    async with open_ports(settings) as store:
        authenticate = authenticator(store.ports, settings)
        site = site_settings(settings)
        async with mcp_http.mount(store.ports, authenticate, closing, site) as mount:
            app = create_app(
                store.ports,
                endpoints(settings) + extra_endpoints,
                authenticate,
                metrics=metrics,
                tracer=_tracer(settings),
                mounts=(mount, *web_http.MOUNTS),
                site=site,
                cross_origin=cross_origin_access(settings),
                closing=closing,
            )
            app.not_found_page = web_http.not_found_page
            observe_store(metrics, store, app.caches.responses)
            _tune_gc()
            async with background_work(store, closing):
                yield app


def _tune_gc() -> None:
    """Exclude long-lived objects from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def _tracer(settings: Settings) -> Any:
    if not settings.otel:
        return None
    from carrel.wiring.tracing import create_tracer  # noqa: PLC0415 - an extra

    return create_tracer()
