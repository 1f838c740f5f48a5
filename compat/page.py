"""The page `docs/compatibility.md`, generated from the stored results of all suites."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from compat.environments import ROOT
from compat.results import StoreResult, results_from_json
from compat.suite_files import RESULTS, Suite

PAGE: Final = ROOT / "docs" / "compatibility.md"
COSTS: Final = ROOT / "compat" / "costs.json"
"""Ratios that `make bench ARGS=adapters` measured last."""
_INTRODUCTION: Final = """\
# Compatibility

Test suites of agent runtimes, run against Carrel: the suites are those that the projects publish,
unchanged, with Carrel in the place of their own implementation, and end-to-end runs of each runtime
with its offline model. `make compat` fetches, runs and checks them on SQLite and on PostgreSQL with
S3, and generates this page.
"""
_COSTS_INTRODUCTION: Final = """\
## Cost of the adapters

The rate of a read and of a write of 4 KB through each adapter, divided by the rate of the plain
client's call: both in one process and in turn, with the same bytes, against one server. The median
of all rounds, and the lowest and highest. `make bench ARGS=adapters` measures it; it fails if a
median is below its goal.
"""
_COST_COLUMNS: Final = ("adapter's call / plain client's call", "ratio", "range", "goal")
_COLUMNS: Final = ("suite", "package", "store", "passed", "failed", "skipped", "exceptions")


def load_results(suites: Iterable[Suite]) -> dict[str, tuple[StoreResult, ...]]:
    """The stored results by name of the suite."""
    files = {suite: suite.folder / RESULTS for suite in suites}
    return {
        suite.name: results_from_json(suite, file.read_text("utf-8"))
        for suite, file in files.items()
        if file.exists()
    }


def load_costs() -> Sequence[Mapping[str, Any]]:
    """The ratios of the adapters that were measured last."""
    costs: Sequence[Mapping[str, Any]] = json.loads(COSTS.read_text("utf-8"))
    return costs


def render_page(
    suites: Mapping[str, Suite],
    results: Mapping[str, Sequence[StoreResult]],
    costs: Sequence[Mapping[str, Any]],
) -> str:
    """The page; suites without results are omitted."""
    lines = [_INTRODUCTION, _row(_COLUMNS), _row(("---",) * 3 + ("--:",) * 4)]
    for name in sorted(results):
        lines += [_row(_cells(suites[name], result)) for result in results[name]]
    lines += ["", *_cost_table(costs)]
    for name in sorted(results):
        lines += _exceptions(suites[name], results[name])
    return "\n".join(lines).rstrip() + "\n"


def _cost_table(costs: Sequence[Mapping[str, Any]]) -> list[str]:
    head = (_row(_COST_COLUMNS), _row(("---",) + ("--:",) * 3))
    rows = [
        (row["what"], f"{row['value']:.2f}", f"{row['low']:.2f} … {row['high']:.2f}", row["goal"])
        for row in costs
    ]
    return [_COSTS_INTRODUCTION, *head, *map(_row, rows), ""]


def _cells(suite: Suite, result: StoreResult) -> tuple[str, ...]:
    counts = (result.passed, *map(len, (result.failures, result.skipped, result.exceptions)))
    package = f"{suite.package} {result.version}"
    return (suite.title, package, result.store, *map(str, counts))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _exceptions(suite: Suite, results: Sequence[StoreResult]) -> list[str]:
    reasons: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for result in results:
        for test, reason in result.exceptions.items():
            reasons[reason][test] = None
        for test, reason in result.skipped.items():
            reasons[f"Skipped by the suite: {reason}"][test] = None
    if not reasons:
        return []
    items = [
        f"- {reason}\n{_wrapped(sorted(tests))}"
        for reason, tests in sorted(reasons.items(), key=lambda item: min(item[1]))
    ]
    return [f"## {suite.title}: tests that do not pass", "", *items, ""]


def _wrapped(tests: Sequence[str]) -> str:
    names = ", ".join(f"`{test}`" for test in tests)
    return f"  ({len(tests)}: {names})"
