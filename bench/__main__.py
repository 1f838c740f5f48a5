"""`make bench`: starts servers on loopback, measures all cases and prints ratios."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path as File
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench import (
    adapter_costs,
    cases,
    commits,
    dreams,
    file_bytes,
    fleet,
    in_process,
    large_files,
    overlay,
    prompt,
    recall,
    run_start,
    tools,
)
from bench.postgres import database
from bench.report import Results
from bench.server import run_server

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
SIZES = tuple(
    int(size) for size in os.environ.get("BENCH_SIZES", "1000,10000,100000,1000000").split(",")
)
OUT = File(__file__).parent / "results" / "latest.json"


def main(names: list[str]) -> int:
    results, console = Results(), Console()
    parts = {
        **{"serve": serve, "store": store, "postgres": postgres, "runs": runs},
        "commits": file_commits,
        **{"overlay": cold_starts, "accept": accepts, "fleet": agents, "scale": scale},
        **{"prompt": prompts, "dream": dream, "tools": commands, "in-process": reads_in_process},
        **{"large-files": large, "recall": recalls, "bytes": carried_bytes},
        "adapters": adapters,
    }
    with Progress(console=console) as progress, tempfile.TemporaryDirectory(dir=_disk()) as folder:
        for name in names or parts:
            parts[name](results, File(folder) / name, progress)
    results.show(console)
    OUT.parent.mkdir(exist_ok=True)
    results.write(OUT)
    console.print("written to bench/results/latest.json")
    return 0 if all(row.met is not False for row in results.rows) else 1


def _disk() -> str:
    """Directory on the project's disk, not on a tmpfs."""
    folder = File(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    return str(folder)


def serve(results: Results, folder: File, progress: Progress) -> None:
    task = progress.add_task("HTTP on SQLite", total=2 * ROUNDS)
    for workers in (1, 2):
        data = folder / str(workers)
        data.mkdir(parents=True)
        with cases.prepared_server(data, workers) as server:
            for _ in range(ROUNDS):
                cases.serve_round(results, server, workers, data)
                progress.advance(task)
        cases.serve_rows(results, workers)


def store(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("disk and store", total=ROUNDS)
    for number in range(ROUNDS):
        cases.store_round(results, folder, f"{number:04}")
        progress.advance(task)
    cases.store_rows(results)


def postgres(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("HTTP on PostgreSQL", total=ROUNDS)
    with database() as url, cases.prepared_server(folder, 1, database_url=url) as server:
        for _ in range(ROUNDS):
            cases.postgres_round(results, server, folder)
            progress.advance(task)
    cases.postgres_rows(results)


def file_commits(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("commits of many files", total=2 * ROUNDS)
    with database() as url:
        for store, database_url in (("SQLite", None), ("PostgreSQL", url)):
            settings: dict[str, Any] = {"database_url": database_url} if database_url else {}
            with run_server(str(folder / store), cpus="0", **settings) as server:
                for number in range(ROUNDS):
                    commits.measure(server, results, store, number, folder)
                    progress.advance(task)
            commits.add_rows(results, store)


def runs(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    small, large = 20, 20_000
    task = progress.add_task("runs in 20 and 20,000 files", total=large)
    with run_server(str(folder), cpus="0") as server:
        keys = {}
        for files in (small, large):
            name = f"of-{files}"
            created = server.ask(
                "POST", "/v1/keys", {"name": name, "kind": "service", "workspace": name}
            )
            keys[files] = json.loads(created)["key"]
        tenant = json.loads(server.ask("GET", "/v1/tenants/me"))["id"]
        for files in (small, large):
            locations = cases.one_workspace(tenant, f"of-{files}", files)
            asyncio.run(cases.fill(folder, locations, partial(progress.advance, task)))
        for _ in range(ROUNDS):
            cases.run_round(results, server, keys)
    label = f"run start, {large:,} files / {small} files"
    results.ratio(
        label,
        f"seconds a run start, {large} files",
        f"seconds a run start, {small} files",
        at_most=1.3,
    )


def dream(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("dreams", total=1)
    asyncio.run(dreams.measure(folder, results, ROUNDS))
    progress.advance(task)
    results.figure(dreams.LABEL, dreams.LABEL, "s", at_most=2.0)


def recalls(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("quality of recall", total=2)
    asyncio.run(recall.measure({"data": str(folder)}, "SQLite", results))
    progress.advance(task)
    with database() as url:
        settings = {"data": str(folder / "postgres"), "database_url": url}
        asyncio.run(recall.measure(settings, "PostgreSQL", results))
    progress.advance(task)


def commands(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("commands", total=ROUNDS)
    for number in range(ROUNDS):
        asyncio.run(tools.measure(folder / str(number), results))
        asyncio.run(tools.file_tools(folder / str(number), results))
        progress.advance(task)
    results.figure(tools.OVERHEAD_LABEL, tools.OVERHEAD_LABEL, "ms", 1000, at_most=60)
    for name in tools.TOOLS:
        results.figure(tools.tool_label(name), tools.tool_label(name), "ms", 1000, at_most=5)


def large(results: Results, folder: File, progress: Progress) -> None:
    """Large files on SQLite, and on PostgreSQL without a bucket."""
    rounds = min(ROUNDS, 3)
    task = progress.add_task("large files", total=2 * rounds)
    for number in range(rounds):
        large_files.measure(folder / str(number), results, "SQLite")
        progress.advance(task)
        with database() as url:
            data = folder / f"postgres-{number}"
            large_files.measure(data, results, "PostgreSQL", url)
        progress.advance(task)
    for store in ("SQLite", "PostgreSQL"):
        large_files.add_rows(results, store)


def carried_bytes(results: Results, folder: File, progress: Progress) -> None:
    task = progress.add_task("bytes of files", total=ROUNDS)
    for number in range(ROUNDS):
        file_bytes.measure_round(folder / str(number), results)
        progress.advance(task)
    file_bytes.add_rows(results)


def reads_in_process(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("reads in process", total=ROUNDS)
    for number in range(ROUNDS):
        asyncio.run(in_process.measure(folder / str(number), results))
        progress.advance(task)
    in_process.rows(results)


def adapters(results: Results, folder: File, progress: Progress) -> None:
    """Reads and writes through the adapters of runtimes, each in its runtime's environment."""
    folder.mkdir(parents=True)
    task = progress.add_task("adapters of runtimes", total=len(adapter_costs.RUNTIMES))
    with run_server(str(folder), cpus="0") as server:
        for runtime in adapter_costs.RUNTIMES:
            adapter_costs.measure(server, results, runtime, ROUNDS)
            progress.advance(task)
    adapter_costs.store(results)


def cold_starts(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("followers of a template", total=overlay.FOLLOWERS)
    slugs = asyncio.run(overlay.prepare(folder, partial(progress.advance, task)))
    task = progress.add_task("cold starts", total=ROUNDS)
    with run_server(str(folder), cpus="0") as server:
        for number in range(ROUNDS):
            overlay.measure_round(results, server, slugs, number)
            progress.advance(task)
    overlay.add_rows(results)


def prompts(results: Results, folder: File, progress: Progress) -> None:
    folder.mkdir(parents=True)
    task = progress.add_task("agents with full prompts", total=prompt.AGENTS)
    slugs = asyncio.run(prompt.prepare(folder, partial(progress.advance, task)))
    task = progress.add_task("prompts", total=ROUNDS)
    with run_server(str(folder), cpus="0") as server:
        for _ in range(ROUNDS):
            prompt.measure_round(results, server, folder, slugs)
            run_start.measure_waiting(server, results, folder, slugs[0])
            progress.advance(task)
    for _ in range(ROUNDS):
        asyncio.run(run_start.measure(folder, slugs, results))
    prompt.add_rows(results)
    run_start.add_rows(results)
    run_start.add_waiting_rows(results)


def accepts(results: Results, folder: File, progress: Progress) -> None:
    """Accept a guardrail for all agents of a template: 10,000 and 100,000 agents."""
    task = progress.add_task("followers to accept for", total=sum(overlay.ACCEPTS))
    for agents in overlay.ACCEPTS:
        seconds = overlay.accept(folder / str(agents), agents, partial(progress.advance, task))
        results.record(f"accept, {agents}", asyncio.run(seconds))
    overlay.accept_rows(results)


def agents(results: Results, folder: File, progress: Progress) -> None:
    """Create, compose and list agents in stores of 1,000 and 1,000,000 agents."""
    task = progress.add_task("agents on a hundred templates", total=sum(fleet.SIZES))
    for size in fleet.SIZES:
        asyncio.run(fleet.fill(folder / str(size), size, partial(progress.advance, task)))
    task = progress.add_task("measuring agents", total=ROUNDS)
    for _ in range(ROUNDS):
        for size in fleet.SIZES:
            asyncio.run(fleet.measure_round(results, folder / str(size), size))
        progress.advance(task)
    fleet.add_rows(results, folder)


def scale(results: Results, folder: File, progress: Progress) -> None:
    """One store for each size, all served at the same time and read in turn."""
    task = progress.add_task("filling", total=sum(SIZES))
    with ExitStack() as stack:
        servers = {}
        for size in SIZES:
            data = folder / str(size)
            data.mkdir(parents=True)
            with run_server(str(data)) as server:
                tenant = json.loads(server.ask("GET", "/v1/tenants/me"))["id"]
            locations = cases.many_workspaces(tenant, 0, size)
            asyncio.run(cases.fill(data, locations, partial(progress.advance, task)))
            servers[size] = stack.enter_context(run_server(str(data), cpus="0"))
        working_sets = {size: cases.sample_urls(size, SIZES[0]) for size in SIZES}
        task = progress.add_task("reading", total=(ROUNDS + 1) * len(SIZES))
        for number in range(ROUNDS + 1):
            for size, server in servers.items():
                # Warm-up: the first round is not recorded, because all caches are cold.
                cases.scale_round(
                    results if number else Results(), server, size, working_sets[size]
                )
                progress.advance(task)
    scale_rows(results)


def scale_rows(results: Results) -> None:
    smallest = SIZES[0]
    for size in SIZES[1:]:
        above, below = f"seconds a read, {size} files", f"seconds a read, {smallest} files"
        goal = 1.5 if size == 1_000_000 else None
        results.ratio(
            f"a read among {size:,} files / among {smallest:,}", above, below, at_most=goal
        )
        any_above = f"seconds a read of any file, {size} files"
        results.ratio(f"a read of any of {size:,} files, uncached / cached", any_above, below)
        results.figure(
            f"memory at {size:,} files", f"memory, {size} files", "MB", 1e-6, at_most=300
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
