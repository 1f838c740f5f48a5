"""Start of a run with its files, prompt and tools in one request: CPU beside single requests."""

from __future__ import annotations

import json
from pathlib import Path as File
from time import process_time
from typing import Any, Final

from bench.report import Results
from carrel.actions.accounts import tenants
from carrel.core.access import Actor
from carrel.server.http.app import HttpApp, create_app
from carrel.server.http.endpoint import Headers
from carrel.server.http.metrics import Metrics
from carrel.settings import load
from carrel.wiring.ports import open_ports
from carrel.wiring.server_app import endpoints

_REQUESTS: Final = 200
_WARM_UP: Final = 5
_PARTS: Final = ["files", "prompt", "tools"]


async def measure(data: File, slug: str, results: Results) -> None:
    """Record the CPU seconds of each request; the store's writer is in the same process."""
    settings = load({"data": str(data), "log_level": "error"}, environ={}, file=File("none"))
    async with open_ports(settings) as store:
        owner = await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
        actor = Actor(owner.tenant, "bench")

        async def authenticate(headers: Headers) -> Actor:
            return actor

        app = create_app(store.ports, endpoints(settings), authenticate, metrics=Metrics())
        listing = ("GET", f"/v1/agents/{slug}/files", b"content=true", None)
        start = ("POST", "/v1/runs", b"", {"agentId": slug})
        complete_start = ("POST", "/v1/runs", b"", {"agentId": slug, "include": _PARTS})
        seconds = {
            "list": await _cpu_seconds(app, *listing),
            "start": await _cpu_seconds(app, *start),
            "start with parts": await _cpu_seconds(app, *complete_start),
        }
    seconds["start and list"] = seconds["start"] + seconds["list"]
    for name, value in seconds.items():
        results.record(f"seconds of {name}", value)


async def _cpu_seconds(app: HttpApp, *request: Any) -> float:
    for _ in range(_WARM_UP):
        await _send(app, *request)
    began = process_time()
    for _ in range(_REQUESTS):
        await _send(app, *request)
    return (process_time() - began) / _REQUESTS


async def _send(app: HttpApp, method: str, path: str, query: bytes, body: Any) -> None:
    raw = json.dumps(body).encode() if body else b""
    statuses: list[int] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
    headers = [(b"content-type", b"application/json")]
    await app({**scope, "query_string": query, "headers": headers}, receive, send)
    if statuses[0] >= 300:
        raise RuntimeError(f"{method} {path} returned {statuses[0]}")


def add_rows(results: Results) -> None:
    label = "CPU of a start with files, prompt and tools"
    above = "seconds of start with parts"
    results.ratio(
        f"{label} / of a start and the list", above, "seconds of start and list", at_most=1.3
    )
    results.ratio(f"{label} / of the cached list alone", above, "seconds of list")
    results.figure(label, above, "ms", 1000)
