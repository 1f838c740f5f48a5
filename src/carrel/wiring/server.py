"""Runs the server: one or more processes on one socket, with graceful shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from carrel.actions import demo as demos
from carrel.actions.accounts import sign_in, tenants
from carrel.core.outages import StorageFull
from carrel.ports import Ports
from carrel.server.http.uvicorn_protocol import Connection
from carrel.settings import Settings, export, load
from carrel.settings import metrics_directory as pooled_metrics
from carrel.wiring.catalog import configured_object_store
from carrel.wiring.cli_settings import StoreUnavailable
from carrel.wiring.open_store import translate_open_errors
from carrel.wiring.ports import open_ports
from carrel.wiring.server_app import ServerApp

PR_SET_DUMPABLE: Final = 4
APP: Final = "carrel.wiring.server:create_app"
LOOP: Final = "carrel.server.http.event_loop:ServerLoop"


def create_app() -> ServerApp:
    """Create the ASGI app of a server process from the environment."""
    disable_ptrace()
    return ServerApp(load(), pooled_metrics())


def disable_ptrace() -> None:
    """Prevent other processes of this user from inspecting this one.

    Sandboxed commands run as the same user unless the server runs as root.
    """
    if sys.platform == "linux" and os.getuid() != 0:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, *map(ctypes.c_ulong, (0, 0, 0, 0)))


@dataclass(frozen=True, slots=True)
class StartupBanner:
    """What the operator sees when the server starts."""

    url: str
    link: str | None
    token: str | None
    """Generated owner token, shown only when the store is created."""


async def prepare_store(settings: Settings, port: int, *, demo: bool = False) -> StartupBanner:
    """Create the first tenant if the store is empty, and a sign-in link."""
    async with open_ports(settings) as store:
        created = await tenants.bootstrap(store.ports, settings.owner_token or None)
        if demo:
            await demos.create_demo(
                store.ports, await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
            )
        host = "127.0.0.1" if settings.host in {"0.0.0.0", "::", ""} else settings.host
        host_in_url = f"[{host}]" if ":" in host else host
        url = settings.public_url.rstrip("/") or f"http://{host_in_url}:{port}"
        link = await _create_sign_in_link(store.ports, url)
        token = created.token if created and not settings.owner_token else None
        return StartupBanner(url, link, token)


async def _create_sign_in_link(ports: Ports, url: str) -> str | None:
    """Create a sign-in link for the owner. None on a full disk, which must not stop the start."""
    try:
        code = await sign_in.issue_owner_code(ports, tenants.DEFAULT_TENANT_SLUG)
    except StorageFull:
        return None
    return f"{url}/sign-in#code={code}"


def run(
    settings: Settings,
    on_start: Callable[[StartupBanner], None],
    app: str = APP,
    *,
    demo: bool = False,
) -> None:
    """Serve until stopped. Calls ``on_start`` once the socket is bound.

    Raises StoreUnavailable.
    """
    listener = _bind(settings)
    on_start(_open_store(settings, listener, demo=demo))
    export(settings)
    config = uvicorn.Config(
        app,
        factory=True,
        workers=settings.workers,
        loop=LOOP,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.drain_seconds,
    )
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=[listener])
        return
    with tempfile.TemporaryDirectory(prefix="carrel-metrics-") as metrics_directory:
        export(settings, metrics_directory)
        Multiprocess(config, sockets=[listener]).run()


def _open_store(settings: Settings, listener: socket.socket, *, demo: bool) -> StartupBanner:
    """Prepare the store. Closes the socket and raises StoreUnavailable if that fails."""
    try:
        with translate_open_errors(settings):
            configured_object_store(settings)
            return asyncio.run(prepare_store(settings, listener.getsockname()[1], demo=demo))
    except BaseException:
        listener.close()
        raise


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise StoreUnavailable(_describe_bind_error(error, settings)) from error
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener


def _describe_bind_error(error: OSError, settings: Settings) -> str:
    """Name host and port, and the setting that changes them."""
    host, port = settings.host, settings.port
    start = f"cannot listen on {host} port {port}: "
    if isinstance(error, socket.gaierror):
        return f"{start}no address is known for the host; set --host or CARREL_HOST"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{start}another program uses the port; set --port or CARREL_PORT"
        case errno.EADDRNOTAVAIL:
            return f"{start}this machine has no such address; set --host or CARREL_HOST"
        case errno.EACCES:
            return f"{start}no permission for this port; set --port or CARREL_PORT"
        case _:
            return f"{start}{error.strerror}"
