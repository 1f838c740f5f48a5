"""``make bench``: start what is needed on loopback, measure in one run, print ratios."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path as File

from rich.console import Console
from rich.progress import Progress

from bench import cases, crowd, dreams, hands, in_process, overlay, prompt
from bench.postgres import database
from bench.server import running
from bench.table import Book

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
SIZES = tuple(
    int(size) for size in os.environ.get("BENCH_SIZES", "1000,10000,100000,1000000").split(",")
)
OUT = File(__file__).parent / "results" / "latest.json"


def main(wanted: list[str]) -> int:
    book, console = Book(), Console()
    parts = {
        **{"serve": serve, "store": store, "postgres": postgres, "runs": runs},
        **{"overlay": cold_starts, "accept": accepts, "agents": agents, "scale": scale},
        **{"prompt": prompts, "dream": dream, "hands": commands, "in-process": reads_in_process},
    }
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


def dream(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("dreams", total=1)
    asyncio.run(dreams.measure(folder, book, ROUNDS))
    progress.advance(task)
    book.figure(dreams.WHAT, dreams.WHAT, "s", at_most=2.0)


def commands(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("commands", total=ROUNDS)
    for number in range(ROUNDS):
        asyncio.run(hands.measure(folder / str(number), book))
        asyncio.run(hands.file_tools(folder / str(number), book))
        progress.advance(task)
    book.figure(hands.OVER, hands.OVER, "ms", 1000, at_most=60)
    for name in hands.TOOLS:
        book.figure(hands.tool(name), hands.tool(name), "ms", 1000, at_most=5)


def reads_in_process(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("reads in process", total=ROUNDS)
    for number in range(ROUNDS):
        asyncio.run(in_process.measure(folder / str(number), book))
        progress.advance(task)
    in_process.rows(book)


def cold_starts(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("followers of a template", total=overlay.FOLLOWERS)
    slugs = asyncio.run(overlay.prepare(folder, partial(progress.advance, task)))
    task = progress.add_task("cold starts", total=ROUNDS)
    with running(str(folder), cpus="0") as server:
        for number in range(ROUNDS):
            overlay.round(book, server, slugs, number)
            progress.advance(task)
    overlay.rows(book)


def prompts(book: Book, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("agents with full prompts", total=prompt.AGENTS)
    slugs = asyncio.run(prompt.prepare(folder, partial(progress.advance, task)))
    task = progress.add_task("prompts", total=ROUNDS)
    with running(str(folder), cpus="0") as server:
        for _ in range(ROUNDS):
            prompt.round(book, server, folder, slugs)
            progress.advance(task)
    prompt.rows(book)


def accepts(book: Book, folder: File, progress: Progress) -> None:
    """Accepting a guardrail for all that follow a template, ten thousand and a hundred thousand."""
    task = progress.add_task("followers to accept for", total=sum(overlay.ACCEPTS))
    for agents in overlay.ACCEPTS:
        seconds = overlay.accept(folder / str(agents), agents, partial(progress.advance, task))
        book.note(f"accept, {agents}", asyncio.run(seconds))
    overlay.accept_rows(book)


def agents(book: Book, folder: File, progress: Progress) -> None:
    """A thousand agents, and a million: making one, composing any one, listing a page."""
    task = progress.add_task("agents on a hundred templates", total=sum(crowd.SIZES))
    for size in crowd.SIZES:
        asyncio.run(crowd.fill(folder / str(size), size, partial(progress.advance, task)))
    task = progress.add_task("asking them", total=ROUNDS)
    for _ in range(ROUNDS):
        for size in crowd.SIZES:
            asyncio.run(crowd.round(book, folder / str(size), size))
        progress.advance(task)
    crowd.rows(book, folder)


def scale(book: Book, folder: File, progress: Progress) -> None:
    """A store for each size, all served at once and read in turn."""
    task = progress.add_task("filling", total=sum(SIZES))
    with ExitStack() as stack:
        servers = {}
        for size in SIZES:
            data = folder / str(size)
            data.mkdir(parents=True)
            with running(str(data)) as server:
                tenant = json.loads(server.ask("GET", "/v1/tenants/me"))["id"]
            spots = cases.many_workspaces(tenant, 0, size)
            asyncio.run(cases.fill(data, spots, partial(progress.advance, task)))
            servers[size] = stack.enter_context(running(str(data), cpus="0"))
        desks = {size: cases.desk(size, SIZES[0]) for size in SIZES}
        task = progress.add_task("reading", total=(ROUNDS + 1) * len(SIZES))
        for number in range(ROUNDS + 1):
            for size, server in servers.items():
                # The first round is not noted: in it every size is read for the first time.
                cases.scale_round(book if number else Book(), server, size, desks[size])
                progress.advance(task)
    scale_rows(book)


def scale_rows(book: Book) -> None:
    least = SIZES[0]
    for size in SIZES[1:]:
        above, below = f"seconds a read, {size} files", f"seconds a read, {least} files"
        goal = 1.5 if size == 1_000_000 else None
        book.ratio(f"a read among {size:,} files / among {least:,}", above, below, at_most=goal)
        any_above = f"seconds a read of any file, {size} files"
        book.ratio(f"a read of any of {size:,} files, not known yet / known", any_above, below)
        book.figure(f"memory at {size:,} files", f"memory, {size} files", "MB", 1e-6, at_most=300)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
