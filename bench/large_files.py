"""Large files of a command: latency of /healthz and memory of the server meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path as File
from time import perf_counter, sleep
from typing import Any, Final

from bench.report import Results
from bench.server import RunningServer, run_server

_INTERVAL_SECONDS: Final = 0.01
_IDLE_SECONDS: Final = 3.0
IDLE: Final = "no call"
CALLS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ten sparse files of 100 MB": (
        "bash",
        {"command": "for n in 0 1 2 3 4 5 6 7 8 9; do truncate -s 100MB sparse-$n; done"},
    ),
    "a text of 70 MB": ("bash", {"command": "yes 'a line of text' | head -c 70MB > text.txt"}),
    "`edit` of the text": (
        "edit",
        {"file_path": "text.txt", "old_string": "line", "new_string": "row", "replace_all": True},
    ),
    "1 GB of data instead": (
        "bash",
        {
            "command": "rm -f sparse-* text.txt;"
            " for n in 0 1 2 3 4 5 6 7 8 9; do yes $n | head -c 100MB > data-$n; done"
        },
    ),
    "`bash` beside them": ("bash", {"command": "echo note > note.md; ls"}),
    "`grep` among them": ("grep", {"pattern": "needle", "output_mode": "count"}),
}


def slowest_label(name: str, store: str) -> str:
    return f"slowest /healthz, {name}, {store}"


def memory_label(name: str, store: str) -> str:
    return f"memory, {name}, {store}"


def measure(folder: File, results: Results, store: str, url: str = "") -> None:
    """Run each call on a new server and record the slowest response and peak memory."""
    folder.mkdir(parents=True)
    with run_server(str(folder), database_url=url) as server:
        path = _create_agent(server)
        with _watch(server) as peak:  # the machine alone, for comparison
            sleep(_IDLE_SECONDS)
        results.record(slowest_label(IDLE, store), peak["seconds"])
        for name, (tool, arguments) in CALLS.items():
            with _watch(server) as peak:
                answer = json.loads(server.ask("POST", f"{path}/{tool}", {"arguments": arguments}))
            assert not answer["isError"], answer
            results.record(slowest_label(name, store), peak["seconds"])
            results.record(memory_label(name, store), peak["bytes"])


def add_rows(results: Results, store: str) -> None:
    idle = slowest_label(IDLE, store)
    results.figure(idle, idle, "ms", 1000)
    for name in CALLS:
        slowest, memory = slowest_label(name, store), memory_label(name, store)
        results.figure(slowest, slowest, "ms", 1000, at_most=100)
        results.figure(memory, memory, "MB", 1e-6, at_most=300)


def _create_agent(server: RunningServer) -> str:
    """Create an agent with a workspace and a sandbox; return the path of its tools."""
    box = {"name": "box", "config": {"provider": "local", "permissionMode": "bypass"}}
    sandbox = json.loads(server.ask("POST", "/accounts/me/sandboxes", box))["sandboxId"]
    workspace = json.loads(server.ask("POST", "/accounts/me/workspaces", {"name": "files"}))
    attached = {"name": "files", "workspaceId": workspace["workspaceId"]}
    config = {"sandbox": sandbox, "workspaces": [attached]}
    body = {"slug": "kate", "name": "Kate", "config": config}
    agent = json.loads(server.ask("POST", "/v1/agents", body))["id"]
    path = f"/v1/agents/{agent}/tools"
    server.ask("POST", f"{path}/bash", {"arguments": {"command": "true"}})
    return path


@contextmanager
def _watch(server: RunningServer) -> Iterator[dict[str, float]]:
    """Poll /healthz and the memory of the server until the context is left."""
    peak = {"seconds": 0.0, "bytes": 0.0}
    ended = threading.Event()

    def poll() -> None:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        while not ended.is_set():
            began = perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            peak["seconds"] = max(peak["seconds"], perf_counter() - began)
            peak["bytes"] = max(peak["bytes"], server.memory())
            sleep(_INTERVAL_SECONDS)
        connection.close()

    watcher = threading.Thread(target=poll)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
