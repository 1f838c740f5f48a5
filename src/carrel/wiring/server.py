"""Running the server: one process or several on one socket, stopped without losing a request."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from carrel.actions import signins, tenants
from carrel.settings import Settings, exported, load
from carrel.wiring.app import Server
from carrel.wiring.world import open_world

_CURRENT: list[Server] = []


class Process(uvicorn.Server):
    """One server process; a signal ends its streams before it waits for what is under way."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for server in _CURRENT:
            server.close()
        super().handle_exit(sig, frame)


def create_app() -> Server:
    """The app of a server process, from the environment."""
    server = Server(load(), os.environ.get("PROMETHEUS_MULTIPROC_DIR"))
    _CURRENT.append(server)
    return server


class Welcome:
    """What the operator is told when the server starts."""

    def __init__(self, url: str, link: str, token: str | None) -> None:
        self.url, self.link, self.token = url, link, token


async def welcome(settings: Settings, port: int) -> Welcome:
    """Make the store ready, with a first tenant if it is empty, and a link to sign in with."""
    async with open_world(settings) as opened:
        created = await tenants.bootstrap(opened.world, settings.owner_token or None)
        code = await signins.for_owner(opened.world, tenants.FIRST)
        host = "127.0.0.1" if settings.host in {"0.0.0.0", "::", ""} else settings.host
        shown = f"[{host}]" if ":" in host else host
        url = settings.public_url.rstrip("/") or f"http://{shown}:{port}"
        return Welcome(url, f"{url}/#code={code}", created.token if created else None)


def run(settings: Settings, tell: Any) -> None:
    """Serve until told to stop. ``tell`` is given the Welcome once the socket is bound."""
    listener = _bind(settings)
    port = listener.getsockname()[1]
    tell(asyncio.run(welcome(settings, port)))
    os.environ.update(exported(settings))
    config = uvicorn.Config(
        "carrel.wiring.server:create_app",
        factory=True,
        workers=settings.workers,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.drain_seconds,
    )
    server = Process(config)
    if settings.workers == 1:
        server.run(sockets=[listener])
        return
    pooled = tempfile.mkdtemp(prefix="carrel-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = pooled
    try:
        Multiprocess(config, target=server.run, sockets=[listener]).run()
    finally:
        shutil.rmtree(pooled, ignore_errors=True)


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.host, settings.port))
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener
