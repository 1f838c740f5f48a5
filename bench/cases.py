"""What is measured. Each function measures one round of its cases, interleaved."""

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
from bench.load import Seen
from bench.server import FILES, TOKEN, Running, running
from bench.table import Book
from carrel.adapters.sqlite import open_store
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.tree import Commit, Entry, Write

CONTENT = disk.CONTENT.decode()
BODY = json.dumps({"content": CONTENT})
PATHS = [f"{FILES}/notes/file-{n}.md" for n in range(100)]
LOADS = (1, 16, 64)
SECOND = float(os.environ.get("BENCH_SECONDS", "0.5"))
PAGE = 10_000
"""Files a workspace: its limit."""


@contextmanager
def prepared(data: File, workers: int, **settings: str) -> Iterator[Running]:
    """A server with 100 files of 4 KB. One worker and the load have a core each."""
    with running(
        str(data), workers=workers, cpus="0" if workers == 1 else "", **settings
    ) as server:
        for path in PATHS:
            server.ask("PUT", path, {"content": CONTENT})
        yield server


def serve_round(book: Book, server: Running, workers: int, folder: File) -> None:
    """Reads, lists, writes and run starts over HTTP, beside constant bytes and the disk."""
    cpu = 1 if workers == 1 else None
    size = len(server.ask("GET", PATHS[0]))
    listed = len(server.ask("GET", FILES))
    for load in LOADS:
        case = f"{workers} worker{'s' * (workers > 1)}, {load} connections"
        about = {"connections": load, "seconds": SECOND, "cpu": cpu}
        constant = server.load(paths=[f"/bench/constant?size={size}"], **about)
        get = server.load(token=TOKEN, paths=PATHS, **about)
        long = server.load(paths=[f"/bench/constant?size={listed}"], **about)
        listing = server.load(token=TOKEN, paths=[FILES], **about)
        book.note(f"constant 4 KB, {case}", constant.rate)
        book.note(f"GET 4 KB, {case}", get.rate)
        book.note(f"constant list, {case}", long.rate)
        book.note(f"list 100, {case}", listing.rate)
        synced = disk.fdatasync_rate(folder, SECOND / 2)
        book.note(f"fdatasync, {case}", synced)
        put = server.load(
            token=TOKEN, method="PUT", paths=PATHS, body=BODY, conditional=True, **about
        )
        book.note(f"PUT 4 KB, {case}", put.rate)
        book.note(f"PUT 4 KB p99, {case}", put.p99)
        if load in _compared(workers):
            bare = disk.sqlite_rate(folder, SECOND / 2, group=load)
            book.note(f"bare, {case}", _in_turn(bare, constant.rate))
        if load == 1:
            book.note(f"least, {case}", _in_turn(synced, constant.rate))
        body = json.dumps({"workflowId": "bench"})
        start = server.load(token=TOKEN, method="POST", paths=["/v1/runs"], body=body, **about)
        book.note(f"run start, {case}", start.rate)


def _in_turn(one: float, other: float) -> float:
    """The rate of doing both, one after the other."""
    return 1 / (1 / one + 1 / other)


def _compared(workers: int) -> tuple[int, ...]:
    """The loads that are compared with bare SQLite and constant answers, one after the other: of
    two workers one may write while the other answers."""
    return (1, 64) if workers == 1 else (1,)


def serve_rows(book: Book, workers: int) -> None:
    for load in LOADS:
        case = f"{workers} worker{'s' * (workers > 1)}, {load} connections"
        goal = {1: 0.3, 64: 1.0}.get(load)
        book.ratio(
            f"GET 4 KB / constant, {case}",
            f"GET 4 KB, {case}",
            f"constant 4 KB, {case}",
            at_least=0.6,
        )
        book.ratio(
            f"list 100 / constant, {case}",
            f"list 100, {case}",
            f"constant list, {case}",
            at_least=0.4,
        )
        book.ratio(
            f"PUT 4 KB / fdatasync, {case}",
            f"PUT 4 KB, {case}",
            f"fdatasync, {case}",
            at_least=goal,
        )
        if load in _compared(workers):
            what = f"bare SQLite commit, then constant answers / fdatasync, {case}"
            book.ratio(what, f"bare, {case}", f"fdatasync, {case}")
        if load == 1:
            what = f"fdatasync, then a constant answer / fdatasync, {case}"
            book.ratio(what, f"least, {case}", f"fdatasync, {case}")
        most = 10 if load == 16 else None
        book.figure(f"PUT 4 KB p99, {case}", f"PUT 4 KB p99, {case}", "ms", 1000, at_most=most)
        book.ratio(f"run start / fdatasync, {case}", f"run start, {case}", f"fdatasync, {case}")


def store_round(book: Book, folder: File, mark: str) -> None:
    """The disk, SQLite by itself, and Carrel's store with no HTTP around it."""
    book.note("fdatasync", disk.fdatasync_rate(folder, SECOND))
    book.note("bare SQLite", disk.sqlite_rate(folder, SECOND))
    uvloop.run(_store(book, folder, mark))


async def _store(book: Book, folder: File, mark: str) -> None:
    async with open_store(folder / "store.db") as store:
        for writers in (1, 64):
            book.note(f"commits, {writers}", await disk.commit_rate(store, writers, SECOND))
        book.note("run starts", await disk.run_start_rate(store, SECOND, mark))


def store_rows(book: Book) -> None:
    book.ratio("bare SQLite commit / fdatasync, 1 writer", "bare SQLite", "fdatasync")
    book.ratio("Carrel commit, no HTTP / bare SQLite, 1 writer", "commits, 1", "bare SQLite")
    book.ratio("Carrel commit, no HTTP / fdatasync, 64 writers", "commits, 64", "fdatasync")
    book.ratio("run start, store time / fdatasync time", "fdatasync", "run starts", at_most=2.0)


def postgres_round(book: Book, server: Running, folder: File) -> None:
    about = {"connections": 32, "seconds": SECOND * 2}
    book.note("PostgreSQL fdatasync", disk.fdatasync_rate(folder, SECOND))
    put = server.load(token=TOKEN, method="PUT", paths=PATHS, body=BODY, conditional=True, **about)
    book.note("PostgreSQL PUT", put.rate)


def postgres_rows(book: Book) -> None:
    what = "PUT 4 KB / fdatasync, PostgreSQL, 32 connections"
    book.ratio(what, "PostgreSQL PUT", "PostgreSQL fdatasync", at_least=0.5)


Tell = Callable[[int], None]
Spot = tuple[Scope, Path]


async def fill(data: File, spots: Iterator[Spot], tell: Tell) -> None:
    """Add a file of 4 KB at each spot, through the one write path."""
    async with open_store(data / "carrel.db") as store:
        while some := list(islice(spots, 500)):
            contents = [path.text.encode().ljust(64) + disk.CONTENT[64:] for _, path in some]
            blobs = await store.blobs.put(contents)
            writes = [Write(*spot, Entry(blob)) for spot, blob in zip(some, blobs, strict=True)]
            await store.trees.commit([Commit((write,), "bench", "fill", 0) for write in writes])
            tell(len(some))


def one_workspace(tenant: str, name: str, files: int) -> Iterator[Spot]:
    scope = Scope(tenant, ScopeKind.WORKSPACE, name)
    return ((scope, Path(_name(n))) for n in range(files))


def many_workspaces(tenant: str, start: int, stop: int) -> Iterator[Spot]:
    """Workspaces of 10,000 files each."""
    for n in range(start, stop):
        yield Scope(tenant, ScopeKind.WORKSPACE, f"shelf-{n // PAGE}"), Path(_name(n % PAGE))


def _name(number: int) -> str:
    return f"notes/file-{number}.md"


def desk(files: int, wanted: int) -> list[str]:
    """Files of a store that somebody works with: as many in a large store as in a small one."""
    return _shelved(random.sample(range(files), wanted))


def scale_round(book: Book, server: Running, files: int, desk: list[str]) -> None:
    """Reads of the files on the desk again and again, and of any files of the store."""
    book.note(f"seconds a read, {files} files", 1 / _read(server, desk).rate)
    book.note(f"memory, {files} files", server.memory())
    strange = _shelved(random.choices(range(files), k=5_000))
    book.note(f"seconds a read of any file, {files} files", 1 / _read(server, strange).rate)


def _read(server: Running, paths: list[str]) -> Seen:
    return server.load(token=TOKEN, paths=paths, connections=16, seconds=SECOND, cpu=1)


def _shelved(numbers: Iterable[int]) -> list[str]:
    return [f"/v1/workspaces/shelf-{n // PAGE}/files/{_name(n % PAGE)}" for n in numbers]


def run_round(book: Book, server: Running, keys: dict[int, str]) -> None:
    """Starting runs in a small and in a large workspace, one after the other."""
    for files, key in keys.items():
        body = json.dumps({"workflowId": "bench"})
        seen = server.load(
            token=key, method="POST", paths=["/v1/runs"], body=body, seconds=SECOND, cpu=1
        )
        book.note(f"seconds a run start, {files} files", 1 / seen.rate)
