"""Commits of 1, 10 and 100 files, compared with as many single PUTs."""

from __future__ import annotations

import json
from typing import Final

from bench.cases import CONTENT, SECONDS
from bench.report import Results
from bench.server import TOKEN, RunningServer

SIZES: Final = (1, 10, 100)
LEAST_GAIN: Final = 20
"""Files of a commit of 100 are written at least so many times as fast as by single PUTs."""
ROOTS: Final = {"workspace": "/v1/workspaces/bench", "agent": "/v1/agents/bench"}


def prepare(server: RunningServer) -> None:
    server.ask("POST", "/v1/agents", {"slug": "bench", "name": "Bench"})


def measure(server: RunningServer, results: Results, store: str) -> None:
    """Record files a second by single PUTs and by commits, one request at a time."""
    common = {"token": TOKEN, "connections": 1, "seconds": 4 * SECONDS}
    for name, root in ROOTS.items():
        paths = [f"notes/file-{n}.md" for n in range(max(SIZES))]
        body = json.dumps({"content": CONTENT})
        urls = [f"{root}/files/{path}" for path in paths]
        single = server.load(method="PUT", paths=urls, body=body, **common)
        results.record(_put_label(name, store), single.rate)
        for size in SIZES:
            writes = [{"op": "put", "path": path, "content": CONTENT} for path in paths[:size]]
            body = json.dumps({"writes": writes})
            commit = server.load(method="POST", paths=[f"{root}/commits"], body=body, **common)
            results.record(_commit_label(size, name, store), commit.rate * size)


def add_rows(results: Results, store: str) -> None:
    for name in ROOTS:
        for size in SIZES:
            label = f"files in commits of {size} / in single PUTs, {name}, {store}"
            goal = LEAST_GAIN if size == max(SIZES) else None
            commits, puts = _commit_label(size, name, store), _put_label(name, store)
            results.ratio(label, commits, puts, at_least=goal)


def _put_label(name: str, store: str) -> str:
    return f"files a second by PUT, {name}, {store}"


def _commit_label(size: int, name: str, store: str) -> str:
    return f"files a second in commits of {size}, {name}, {store}"
