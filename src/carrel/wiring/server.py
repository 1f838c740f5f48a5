"""Running the server: one process or several on one socket, stopped without losing a request."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from carrel.actions.accounts import sign_in, tenants
from carrel.actions.demo import demo as demos
from carrel.server.http.uvicorn_protocol import Connection
from carrel.settings import Settings, export, load, pooled_metrics
from carrel.wiring.catalog import configured_object_store
from carrel.wiring.open_store import translate_open_errors
from carrel.wiring.ports import open_world
from carrel.wiring.server_app import Server

PR_SET_DUMPABLE: Final = 4
APP: Final = "carrel.wiring.server:create_app"


def create_app() -> Server:
    """The app of a server process, from the environment."""
    disable_ptrace()
    return Server(load(), pooled_metrics())


def disable_ptrace() -> None:
    """Let no process of the same user look into this one: commands are that, unless we are root."""
    if sys.platform == "linux" and os.getuid() != 0:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, *map(ctypes.c_ulong, (0, 0, 0, 0)))


@dataclass(frozen=True, slots=True)
class StartupBanner:
    """What the operator is told when the server starts."""

    url: str
    link: str
    token: str | None
    """The owner's, on the day the store was made and never again."""


async def prepare_store(settings: Settings, port: int, *, demo: bool = False) -> StartupBanner:
    """Make the store ready, with a first tenant if it is empty, and a link to sign in with."""
    async with open_world(settings) as opened:
        created = await tenants.bootstrap(opened.ports, settings.owner_token or None)
        if demo:
            await demos.create_demo(
                opened.ports, await tenants.first_owner(opened.ports, tenants.FIRST)
            )
        code = await sign_in.for_owner(opened.ports, tenants.FIRST)
        host = "127.0.0.1" if settings.host in {"0.0.0.0", "::", ""} else settings.host
        shown = f"[{host}]" if ":" in host else host
        url = settings.public_url.rstrip("/") or f"http://{shown}:{port}"
        return StartupBanner(url, f"{url}/sign-in#code={code}", created.token if created else None)


def run(
    settings: Settings, tell: Callable[[StartupBanner], None], app: str = APP, *, demo: bool = False
) -> None:
    """Serve until told to stop. ``tell`` is given the Welcome once the socket is bound.

    Raises Unopenable where there is no store to be had by these settings.
    """
    listener = _bind(settings)
    port = listener.getsockname()[1]
    with translate_open_errors(settings):
        configured_object_store(settings)
        greeting = asyncio.run(prepare_store(settings, port, demo=demo))
    tell(greeting)
    export(settings)
    config = uvicorn.Config(
        app,
        factory=True,
        workers=settings.workers,
        loop="uvloop",
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
    with tempfile.TemporaryDirectory(prefix="carrel-metrics-") as pooled:
        export(settings, pooled)
        Multiprocess(config, sockets=[listener]).run()


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.host, settings.port))
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener
