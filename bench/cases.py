"""Benchmark cases. Each function measures one round, with cases interleaved."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path as File

import uvloop

from bench import disk
from bench.load import LoadResult
from bench.report import Results
from bench.server import FILES, TOKEN, RunningServer, run_server
from carrel.adapters.sqlite import open_store
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.commit import Commit, Write
from carrel.core.store.entry import Entry

CONTENT = disk.CONTENT.decode()
BODY = json.dumps({"content": CONTENT})
PATHS = [f"{FILES}/notes/file-{n}.md" for n in range(100)]
CONNECTION_COUNTS = (1, 16, 64)
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
PAGE = 10_000
"""Maximum number of files in a workspace."""


@contextmanager
def prepared_server(data: File, workers: int, **settings: str) -> Iterator[RunningServer]:
    """Run a server with 100 files of 4 KB.

    With 1 worker, server and load generator have a core each.
    """
    with run_server(
        str(data), workers=workers, cpus="0" if workers == 1 else "", **settings
    ) as server:
        for path in PATHS:
            server.ask("PUT", path, {"content": CONTENT})
        yield server


def serve_round(results: Results, server: RunningServer, workers: int, folder: File) -> None:
    """Measure reads, lists, writes and run starts over HTTP.

    Constant bytes and the disk are measured in the same round.
    """
    cpu = 1 if workers == 1 else None
    size = len(server.ask("GET", PATHS[0]))
    listed = len(server.ask("GET", FILES))
    for load in CONNECTION_COUNTS:
        case = f"{workers} worker{'s' * (workers > 1)}, {load} connections"
        common = {"connections": load, "seconds": SECONDS, "cpu": cpu}
        constant = server.load(paths=[f"/bench/constant?size={size}"], **common)
        get = server.load(token=TOKEN, paths=PATHS, **common)
        long = server.load(paths=[f"/bench/constant?size={listed}"], **common)
        listing = server.load(token=TOKEN, paths=[FILES], **common)
        results.record(f"constant 4 KB, {case}", constant.rate)
        results.record(f"GET 4 KB, {case}", get.rate)
        results.record(f"constant list, {case}", long.rate)
        results.record(f"list 100, {case}", listing.rate)
        synced = disk.fdatasync_rate(folder, SECONDS / 2)
        results.record(f"fdatasync, {case}", synced)
        put = server.load(
            token=TOKEN, method="PUT", paths=PATHS, body=BODY, conditional=True, **common
        )
        results.record(f"PUT 4 KB, {case}", put.rate)
        results.record(f"PUT 4 KB p99, {case}", put.p99)
        if load in _comparable_connections(workers):
            bare = disk.sqlite_rate(folder, SECONDS / 2, group=load)
            results.record(f"bare, {case}", _sequential_rate(bare, constant.rate))
        if load == 1:
            results.record(f"least, {case}", _sequential_rate(synced, constant.rate))
        body = json.dumps({"workflowId": "bench"})
        start = server.load(token=TOKEN, method="POST", paths=["/v1/runs"], body=body, **common)
        results.record(f"run start, {case}", start.rate)


def _sequential_rate(first: float, second: float) -> float:
    """Rate of doing both operations one after the other."""
    return 1 / (1 / first + 1 / second)


def _comparable_connections(workers: int) -> tuple[int, ...]:
    """Connection counts compared with bare SQLite plus a constant response.

    With 2 workers, one may write while the other responds, so only 1 connection is comparable.
    """
    return (1, 64) if workers == 1 else (1,)


def serve_rows(results: Results, workers: int) -> None:
    for load in CONNECTION_COUNTS:
        case = f"{workers} worker{'s' * (workers > 1)}, {load} connections"
        goal = {1: 0.3, 64: 1.0}.get(load)
        results.ratio(
            f"GET 4 KB / constant, {case}",
            f"GET 4 KB, {case}",
            f"constant 4 KB, {case}",
            at_least=0.6,
        )
        results.ratio(
            f"list 100 / constant, {case}",
            f"list 100, {case}",
            f"constant list, {case}",
            at_least=0.4,
        )
        results.ratio(
            f"PUT 4 KB / fdatasync, {case}",
            f"PUT 4 KB, {case}",
            f"fdatasync, {case}",
            at_least=goal,
        )
        if load in _comparable_connections(workers):
            label = f"bare SQLite commit, then constant answers / fdatasync, {case}"
            results.ratio(label, f"bare, {case}", f"fdatasync, {case}")
        if load == 1:
            label = f"fdatasync, then a constant answer / fdatasync, {case}"
            results.ratio(label, f"least, {case}", f"fdatasync, {case}")
        max_p99_ms = 10 if load == 16 else None
        results.figure(
            f"PUT 4 KB p99, {case}", f"PUT 4 KB p99, {case}", "ms", 1000, at_most=max_p99_ms
        )
        results.ratio(f"run start / fdatasync, {case}", f"run start, {case}", f"fdatasync, {case}")


def store_round(results: Results, folder: File, mark: str) -> None:
    """Measure the disk, bare SQLite and Carrel's store without HTTP."""
    results.record("fdatasync", disk.fdatasync_rate(folder, SECONDS))
    results.record("bare SQLite", disk.sqlite_rate(folder, SECONDS))
    uvloop.run(_store(results, folder, mark))


async def _store(results: Results, folder: File, mark: str) -> None:
    async with open_store(folder / "store.db") as store:
        for writers in (1, 64):
            results.record(f"commits, {writers}", await disk.commit_rate(store, writers, SECONDS))
        results.record("run starts", await disk.run_start_rate(store, SECONDS, mark))


def store_rows(results: Results) -> None:
    results.ratio("bare SQLite commit / fdatasync, 1 writer", "bare SQLite", "fdatasync")
    results.ratio("Carrel commit, no HTTP / bare SQLite, 1 writer", "commits, 1", "bare SQLite")
    results.ratio("Carrel commit, no HTTP / fdatasync, 64 writers", "commits, 64", "fdatasync")
    results.ratio("run start, store time / fdatasync time", "fdatasync", "run starts", at_most=2.0)


def postgres_round(results: Results, server: RunningServer, folder: File) -> None:
    common = {"connections": 32, "seconds": SECONDS * 2}
    results.record("PostgreSQL fdatasync", disk.fdatasync_rate(folder, SECONDS))
    put = server.load(token=TOKEN, method="PUT", paths=PATHS, body=BODY, conditional=True, **common)
    results.record("PostgreSQL PUT", put.rate)


def postgres_rows(results: Results) -> None:
    label = "PUT 4 KB / fdatasync, PostgreSQL, 32 connections"
    results.ratio(label, "PostgreSQL PUT", "PostgreSQL fdatasync", at_least=0.5)


ProgressCallback = Callable[[int], None]
FileLocation = tuple[Scope, Path]


async def fill(
    data: File, locations: Iterator[FileLocation], on_progress: ProgressCallback
) -> None:
    """Add a 4 KB file at each location through the store's write path."""
    async with open_store(data / "carrel.db") as store:
        while batch := list(islice(locations, 500)):
            contents = [path.text.encode().ljust(64) + disk.CONTENT[64:] for _, path in batch]
            blobs = await store.blobs.put(contents)
            writes = [
                Write(*location, Entry(blob)) for location, blob in zip(batch, blobs, strict=True)
            ]
            await store.trees.commit([Commit((write,), "bench", "fill", 0) for write in writes])
            on_progress(len(batch))


def one_workspace(tenant: str, name: str, files: int) -> Iterator[FileLocation]:
    scope = Scope(tenant, ScopeKind.WORKSPACE, name)
    return ((scope, Path(_name(n))) for n in range(files))


def many_workspaces(tenant: str, start: int, stop: int) -> Iterator[FileLocation]:
    """Locations in workspaces of 10,000 files each."""
    for n in range(start, stop):
        yield Scope(tenant, ScopeKind.WORKSPACE, f"workspace-{n // PAGE}"), Path(_name(n % PAGE))


def _name(number: int) -> str:
    return f"notes/file-{number}.md"


def sample_urls(files: int, count: int) -> list[str]:
    """URLs of a random working set, of the same size in large and small stores."""
    return _file_urls(random.sample(range(files), count))


def scale_round(
    results: Results, server: RunningServer, files: int, working_set: list[str]
) -> None:
    """Measure repeated reads of the working set, and reads of random files."""
    results.record(f"seconds a read, {files} files", 1 / _read(server, working_set).rate)
    results.record(f"memory, {files} files", server.memory())
    random_urls = _file_urls(random.choices(range(files), k=5_000))
    results.record(
        f"seconds a read of any file, {files} files", 1 / _read(server, random_urls).rate
    )


def _read(server: RunningServer, paths: list[str]) -> LoadResult:
    return server.load(token=TOKEN, paths=paths, connections=16, seconds=SECONDS, cpu=1)


def _file_urls(numbers: Iterable[int]) -> list[str]:
    return [f"/v1/workspaces/workspace-{n // PAGE}/files/{_name(n % PAGE)}" for n in numbers]


def run_round(results: Results, server: RunningServer, keys: dict[int, str]) -> None:
    """Measure run starts in a small and in a large workspace, one after the other."""
    for files, key in keys.items():
        body = json.dumps({"workflowId": "bench"})
        measured = server.load(
            token=key, method="POST", paths=["/v1/runs"], body=body, seconds=SECONDS, cpu=1
        )
        results.record(f"seconds a run start, {files} files", 1 / measured.rate)
