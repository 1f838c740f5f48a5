"""Start of a run with its files, prompt and tools in one request, beside single requests.

CPU without HTTP, and the time that one client waits, of which a part is the sync of one row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path as File
from time import process_time
from typing import Any, Final

from bench import disk
from bench.cases import SECONDS
from bench.report import Results
from bench.server import TOKEN, RunningServer
from carrel.actions.accounts import tenants
from carrel.core.access import Actor
from carrel.ports import Ports
from carrel.server.http.app import HttpApp, create_app
from carrel.server.http.endpoint import Headers
from carrel.server.http.metrics import Metrics
from carrel.settings import Settings, load
from carrel.wiring.ports import open_ports
from carrel.wiring.server_app import endpoints

_REQUESTS: Final = 200
_WARM_UP: Final = 5
_PARTS: Final = ["files", "prompt", "tools"]
_KINDS: Final = ("list", "start", "start with parts", "four requests")
_LABEL: Final = "CPU of a start with files, prompt and tools"


_ROW: Final = b"x" * 200
"""About the size of the row of a run."""
_WAITED: Final = "time of a start with files, prompt and tools"


def measure_waiting(server: RunningServer, results: Results, folder: File, slug: str) -> None:
    """Record the seconds that one client waits, and those of one durable row of bare SQLite."""
    common = {"token": TOKEN, "connections": 1, "seconds": SECONDS}
    listing = [f"/v1/agents/{slug}/files?content=true"]
    list_seconds = 1 / server.load(paths=listing, **common).rate
    seconds = {"waited for a list": list_seconds}
    for kind, include in (("start", []), ("start with parts", _PARTS)):
        body = json.dumps({"agentId": slug, "include": include})
        starts = server.load(method="POST", paths=["/v1/runs"], body=body, **common)
        seconds[f"waited for a {kind}"] = 1 / starts.rate
    row = 1 / disk.sqlite_rate(folder, SECONDS / 2, 1, _ROW)
    start, with_parts = seconds["waited for a start"], seconds["waited for a start with parts"]
    seconds["waited for a durable row"] = row
    seconds["waited for a start with parts, less a row"] = with_parts - row
    seconds["waited for the parts"] = with_parts - start
    for name, value in seconds.items():
        results.record(name, value)


def add_waiting_rows(results: Results) -> None:
    """Decision 0043 says which part of a start is the disk's."""
    below = "waited for a list"
    for text, above in (
        (_WAITED, "waited for a start with parts"),
        (
            f"{_WAITED}, less one durable row of bare SQLite",
            "waited for a start with parts, less a row",
        ),
        ("time that the parts add to a start", "waited for the parts"),
    ):
        results.ratio(f"{text} / of the list alone", above, below)
    for text, name in (
        (_WAITED, "waited for a start with parts"),
        ("time of a start alone", "waited for a start"),
        ("time of one durable row of bare SQLite", "waited for a durable row"),
        ("time of the list alone", below),
    ):
        results.figure(text, name, "ms", 1000)


async def measure(data: File, slugs: list[str], results: Results) -> None:
    """Record the CPU seconds of each kind of start; the store's writer is in the same process.

    Uncached: each agent once, in a process that has read none. Cached: one agent again and again.
    """
    settings = load({"data": str(data), "log_level": "error"}, environ={}, file=File("none"))
    for kind in _KINDS:
        async with open_ports(settings) as store:
            owner = await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
            app = _create_app(store.ports, settings, Actor(owner.tenant, "bench"))
            await _cpu_seconds(app, kind, slugs[:1] * _WARM_UP)
            uncached = await _cpu_seconds(app, kind, slugs[1:])
            results.record(f"seconds of {kind}, uncached", uncached)
            cached = await _cpu_seconds(app, kind, slugs[:1] * _REQUESTS)
            results.record(f"seconds of {kind}", cached)


def _create_app(ports: Ports, settings: Settings, actor: Actor) -> HttpApp:
    async def authenticate(headers: Headers) -> Actor:
        return actor

    return create_app(ports, endpoints(settings), authenticate, metrics=Metrics())


async def _cpu_seconds(app: HttpApp, kind: str, slugs: Sequence[str]) -> float:
    began = process_time()
    for slug in slugs:
        await _start(app, kind, slug)
    return (process_time() - began) / len(slugs)


async def _start(app: HttpApp, kind: str, slug: str) -> None:
    listing = ("GET", f"/v1/agents/{slug}/files", b"content=true")
    if kind == "list":
        await _send(app, *listing)
        return
    include = _PARTS if kind == "start with parts" else []
    run = await _send(app, "POST", "/v1/runs", body={"agentId": slug, "include": include})
    if kind == "four requests":
        await _send(app, *listing)
        await _send(app, "GET", f"/v1/runs/{json.loads(run)['runId']}/prompt")
        await _send(app, "GET", f"/v1/agents/{slug}/tools")


async def _send(
    app: HttpApp, method: str, path: str, query: bytes = b"", body: Any = None
) -> bytes:
    raw = json.dumps(body).encode() if body else b""
    statuses: list[int] = []
    chunks: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        else:
            chunks.append(message.get("body", b""))

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
    headers = [(b"content-type", b"application/json")]
    await app({**scope, "query_string": query, "headers": headers}, receive, send)
    if statuses[0] >= 300:
        raise RuntimeError(f"{method} {path} returned {statuses[0]}")
    return b"".join(chunks)


def add_rows(results: Results) -> None:
    """Decision 0043 says why a start cannot cost as little as a cached list."""
    above = "seconds of start with parts"
    for text, below, at_most in (
        ("the start alone", "seconds of start", 1.3),
        ("the four requests", "seconds of four requests", 1.0),
        ("the cached list alone", "seconds of list", None),
    ):
        results.ratio(f"{_LABEL} / of {text}", above, below, at_most=at_most)
    above = f"{above}, uncached"
    for text, below, at_most in (
        ("the four requests", "seconds of four requests, uncached", 1.3),
        ("the list alone", "seconds of list, uncached", None),
    ):
        results.ratio(f"{_LABEL}, uncached / of {text}", above, below, at_most=at_most)
    results.figure(_LABEL, "seconds of start with parts", "ms", 1000)
    results.figure(f"{_LABEL}, uncached", above, "ms", 1000)
