"""``make bench``: start what is needed on loopback, measure in one run, print ratios."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path as File

from rich.console import Console
from rich.progress import Progress

from bench import cases
from bench.postgres import database
from bench.server import Running, running
from bench.table import Book

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
SIZES = tuple(
    int(size) for size in os.environ.get("BENCH_SIZES", "1000,10000,100000,1000000").split(",")
)
OUT = File(__file__).parent / "results" / "latest.json"


def main(wanted: list[str]) -> int:
    book, console = Book(), Console()
    parts = {"serve": serve, "store": store, "postgres": postgres, "runs": runs, "scale": scale}
    with Progress(console=console) as progress, tempfile.TemporaryDirectory(dir=_disk()) as folder:
        for name in wanted or parts:
            parts[name](book, File(folder) / name, progress)
    book.show(console)
    OUT.parent.mkdir(exist_ok=True)
    book.write(OUT)
    console.print("written to bench/results/latest.json")
    return 0 if all(row.met is not False for row in book.rows) else 1


def _disk() -> str:
    """A directory on the disk that holds this project, and not in memory."""
    folder = File(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    return str(folder)


def serve(book: Book, folder: File, progress: Progress) -> None:
    task = progress.add_task("HTTP on SQLite", total=2 * ROUNDS)
    for workers in (1, 2):
        data = folder / str(workers)
        data.mkdir(parents=True)
        with cases.prepared(data, workers) as server:
            for _ in range(ROUNDS):
                cases.serve_round(book, server, workers, data)
                progress.advance(task)
        cases.serve_rows(book, workers)


def store(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("disk and store", total=ROUNDS)
    for number in range(ROUNDS):
        cases.store_round(book, folder, f"{number:04}")
        progress.advance(task)
    cases.store_rows(book)


def postgres(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("HTTP on PostgreSQL", total=ROUNDS)
    with database() as url, cases.prepared(folder, 1, database_url=url) as server:
        for _ in range(ROUNDS):
            cases.postgres_round(book, server, folder)
            progress.advance(task)
    cases.postgres_rows(book)


def runs(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    small, large = 20, 20_000
    task = progress.add_task("runs in 20 and 20,000 files", total=large)
    with running(str(folder), cpus="0") as server:
        keys = {}
        for files in (small, large):
            name = f"of-{files}"
            made = server.ask(
                "POST", "/v1/keys", {"name": name, "kind": "service", "workspace": name}
            )
            keys[files] = json.loads(made)["key"]
        tenant = json.loads(server.ask("GET", "/v1/tenants/me"))["id"]
        for files in (small, large):
            spots = cases.one_workspace(tenant, f"of-{files}", files)
            asyncio.run(cases.fill(folder, spots, partial(progress.advance, task)))
        for _ in range(ROUNDS):
            cases.run_round(book, server, keys)
    what = f"run start, {large:,} files / {small} files"
    book.ratio(
        what,
        f"seconds a run start, {large} files",
        f"seconds a run start, {small} files",
        at_most=1.3,
    )


def scale(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("filling", total=SIZES[-1])
    before = 0
    with running(str(folder), cpus="0") as server:
        tenant = json.loads(server.ask("GET", "/v1/tenants/me"))["id"]
    for size in SIZES:
        spots = cases.many_workspaces(tenant, before, size)
        asyncio.run(cases.fill(folder, spots, partial(progress.advance, task)))
        before = size
        with running(str(folder), cpus="0") as server:
            _settle(server, size)
            for _ in range(ROUNDS):
                cases.scale_round(book, server, size)
    least = SIZES[0]
    for size in SIZES[1:]:
        goal = 1.5 if size == 1_000_000 else None
        what = f"a read among {size:,} files / among {least:,}"
        book.ratio(
            what, f"seconds a read, {size} files", f"seconds a read, {least} files", at_most=goal
        )
        book.figure(f"memory at {size:,} files", f"memory, {size} files", "MB", 1e-6, at_most=300)


def _settle(server: Running, size: int) -> None:
    """One unmeasured round, so that every size is read with warm files."""
    cases.scale_round(Book(), server, size)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
