"""Commits of 1, 10 and 100 files, compared with as many single PUTs and with bare SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Final

from bench import disk
from bench.cases import SECONDS
from bench.report import Results
from bench.server import TOKEN, RunningServer

SIZES: Final = (1, 10, 100)
LEAST_GAIN: Final = 20
"""Files of a commit of 100 are written at least so many times as fast as by single PUTs."""
CONTENTS: Final[Mapping[str, str]] = {
    "256 B": disk.CONTENT[:256].decode(),
    "4 KB": disk.CONTENT.decode(),
}
"""A note of an agent, and a long one."""
_KINDS: Final = ("workspace", "agent")
_NEW_PUTS: Final = 500
_NEW_COMMITS: Final = 20


class _Case:
    """Commits to files of one size.

    Either the same 100 files again and again, each of which gets a full history, or new ones.
    """

    def __init__(self, kind: str, size: str, *, new: bool) -> None:
        self.kind, self.size, self.new = kind, size, new
        self.label = f"{size}, {'new' if new else 'rewritten'}, {kind}"

    def measure(self, server: RunningServer, results: Results, store: str, slug: str) -> None:
        """Record files a second by single PUTs and by commits, one request at a time."""
        root, content = f"/v1/{self.kind}s/{slug}", CONTENTS[self.size]
        common = {"token": TOKEN, "connections": 1, "seconds": 2 * SECONDS, "once": self.new}
        if self.new:
            common["seconds"] = 60.0
        count = _NEW_PUTS if self.new else max(SIZES)
        urls = [f"{root}/files/notes/file-{n}.md" for n in range(count)]
        body = json.dumps({"content": content})
        puts = server.load(method="PUT", paths=urls, bodies=[body], **common)
        results.record(f"PUTs, {self.label}, {store}", puts.rate)
        for size in (max(SIZES),) if self.new else SIZES:
            bodies = [
                json.dumps({"writes": list(_writes(f"{size}-{n}/", size, content))})
                for n in range(_NEW_COMMITS if self.new else 1)
            ]
            paths = [f"{root}/commits"] * len(bodies)
            commits = server.load(method="POST", paths=paths, bodies=bodies, **common)
            results.record(f"commits of {size}, {self.label}, {store}", commits.rate * size)

    def add_rows(self, results: Results, store: str) -> None:
        for size in (max(SIZES),) if self.new else SIZES:
            commits = f"commits of {size}, {self.label}, {store}"
            goal = LEAST_GAIN if size == max(SIZES) else None
            puts = f"PUTs, {self.label}, {store}"
            row = f"files in commits of {size} / in PUTs, {self.label}, {store}"
            results.ratio(row, commits, puts, at_least=goal)


def _writes(folder: str, count: int, content: str) -> Iterator[Mapping[str, str]]:
    for n in range(count):
        yield {"op": "put", "path": f"notes/{folder}file-{n}.md", "content": content}


_CASES: Final = tuple(
    _Case(kind, size, new=new) for kind in _KINDS for size in CONTENTS for new in (False, True)
)


def measure(server: RunningServer, results: Results, store: str, number: int, folder: File) -> None:
    """Measure one round; the files of every case are its own."""
    for index, case in enumerate(_CASES):
        slug = f"bench-{index}-{number if case.new else 0}"
        if case.kind == "agent" and (case.new or number == 0):
            server.ask("POST", "/v1/agents", {"slug": slug, "name": "Bench"})
        case.measure(server, results, store, slug)
    if store != "SQLite":
        return
    for size, content in CONTENTS.items():
        for group in (1, max(SIZES)):
            rate = disk.sqlite_rate(folder, SECONDS, group, content.encode())
            results.record(f"bare SQLite, {group} rows, {size}", rate)


def add_rows(results: Results, store: str) -> None:
    for case in _CASES:
        case.add_rows(results, store)
    if store != "SQLite":
        return
    group = max(SIZES)
    for size in CONTENTS:
        single, joint = f"bare SQLite, 1 rows, {size}", f"bare SQLite, {group} rows, {size}"
        results.ratio(f"bare SQLite: {group} rows a transaction / 1 row, {size}", joint, single)
        for case in _CASES:
            if case.kind == "workspace" and case.size == size:
                ours = f"commits of {group}, {case.label}, {store}"
                row = f"files in commits of {group} / rows of bare SQLite, {case.label}"
                results.ratio(row, ours, joint)
