"""`make compat`: runs upstream suites against Carrel and generates `docs/compatibility.md`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from compat.environments import InstallFailed, prepare_environment
from compat.page import PAGE, load_costs, load_results, render_page
from compat.results import StoreResult, results_to_json
from compat.servers import LiveServer, run_server
from compat.sources import SourceUnavailable
from compat.suite_files import RESULTS, STORES, Suite, load_suites
from compat.suite_run import SuiteFailed, ensure_pins, run_suite, update_pins

RESULTS_LOCK = threading.Lock()
UPDATE, PAGE_ONLY = "--update", "--page"
Failure = tuple[Suite, str, Exception]


def main(arguments: Sequence[str]) -> int:
    """Run the suites that are named, or all.

    A name is that of a suite or of a runtime. With `--update` the newest versions are pinned
    first; with `--page` only the page is generated. A store's name limits the run to it.
    """
    console, suites = Console(), load_suites()
    options = {word for word in arguments if word.startswith("--")}
    stores = [store for store in STORES if store in arguments] or STORES
    words = [word for word in arguments if word not in options and word not in STORES]
    unknown = set(words) - suites.keys() - {suite.runtime for suite in suites.values()}
    if unknown or options - {UPDATE, PAGE_ONLY}:
        console.print(f"unknown: {', '.join(sorted(unknown | (options - {UPDATE, PAGE_ONLY})))}")
        console.print(f"suites: {', '.join(suites)}")
        return 2
    selected = [
        suite for suite in suites.values() if not words or {suite.name, suite.runtime} & set(words)
    ]
    outcomes: list[StoreResult | Failure] = []
    if PAGE_ONLY not in options:
        outcomes = run_all(selected, stores, console, update=UPDATE in options)
        show(outcomes, suites, console)
    page = render_page(suites, load_results(suites.values()), load_costs())
    PAGE.write_text(page, "utf-8")
    console.print("written to docs/compatibility.md")
    return (
        0
        if all(isinstance(outcome, StoreResult) and outcome.is_held for outcome in outcomes)
        else 1
    )


def run_all(
    suites: Sequence[Suite], stores: Sequence[str], console: Console, *, update: bool
) -> list[StoreResult | Failure]:
    """The result of outcome suite on outcome store, stored beside its declaration."""
    runtimes = list({suite.runtime: suite for suite in suites}.values())
    with Progress(console=console) as progress:
        task = progress.add_task("environments", total=len(suites) + len(runtimes))
        for suite in suites:
            progress.update(task, description=f"versions of {suite.name}")
            (update_pins if update else ensure_pins)(suite)
            progress.advance(task)
        for suite in runtimes:
            progress.update(task, description=f"environment of {suite.runtime}")
            prepare_environment(suite.runtime)
            progress.advance(task)
        total = sum(len(set(stores) & set(suite.stores)) for suite in suites)
        task = progress.add_task("suites", total=total)
        with ThreadPoolExecutor(len(stores)) as pool:
            runs = [pool.submit(run_on_store, suites, store, progress, task) for store in stores]
            outcomes = [outcome for run in runs for outcome in run.result()]
    return outcomes


def run_on_store(
    suites: Iterable[Suite], store: str, progress: Progress, task: object
) -> list[StoreResult | Failure]:
    outcomes: list[StoreResult | Failure] = []
    with run_server(store) as server:
        for suite in suites:
            if store in suite.stores:
                progress.update(task, description=f"{suite.name} on {store}")  # type: ignore[arg-type]
                outcomes.append(_outcome(suite, server))
                with RESULTS_LOCK:
                    store_results(suite, outcomes)
                progress.advance(task)  # type: ignore[arg-type]
    return outcomes


def _outcome(suite: Suite, server: LiveServer) -> StoreResult | Failure:
    try:
        return run_suite(suite, server)
    except (SuiteFailed, InstallFailed, SourceUnavailable) as failure:
        return suite, server.store, failure


def store_results(suite: Suite, outcomes: Iterable[StoreResult | Failure]) -> None:
    """Replace the stored results on the stores that were run."""
    results = {result.store: result for result in load_results([suite]).get(suite.name, ())}
    results |= {
        outcome.store: outcome
        for outcome in outcomes
        if isinstance(outcome, StoreResult) and outcome.suite == suite.name
    }
    if results:
        (suite.folder / RESULTS).write_text(results_to_json(results.values()), "utf-8")


def show(
    outcomes: Iterable[StoreResult | Failure], suites: dict[str, Suite], console: Console
) -> None:
    table = Table(title="Upstream suites against Carrel")
    for name in ("suite", "package", "store"):
        table.add_column(name)
    for name in ("passed", "failed", "skipped", "exceptions"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        if isinstance(outcome, StoreResult):
            add_row(table, suites[outcome.suite], outcome)
    console.print(table)
    for outcome in outcomes:
        if isinstance(outcome, StoreResult):
            for test, message in outcome.failures.items():
                console.print(
                    f"{outcome.suite} on {outcome.store}: {test}: {message}", markup=False
                )
        else:
            suite, store, failure = outcome
            console.print(
                f"{suite.name} on {store} did not run: {failure}", markup=False, soft_wrap=True
            )


def add_row(table: Table, suite: Suite, result: StoreResult) -> None:
    package = f"{suite.package} {result.version}"
    counts = (result.passed, *map(len, (result.failures, result.skipped, result.exceptions)))
    table.add_row(suite.title, package, result.store, *map(str, counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
