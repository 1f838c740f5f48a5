"""The page `docs/compatibility.md`, generated from the stored results of all suites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from compat.environments import ROOT
from compat.results import StoreResult, results_from_json
from compat.suite_files import RESULTS, Suite

PAGE: Final = ROOT / "docs" / "compatibility.md"
_INTRODUCTION: Final = """\
# Compatibility

Test suites of agent runtimes, run against Carrel: the suites are those that the projects publish,
unchanged, with Carrel in the place of their own implementation, and end-to-end runs of each runtime
with its offline model. `make compat` fetches, runs and checks them on SQLite and on PostgreSQL with
S3, and generates this page.
"""
_COLUMNS: Final = ("suite", "package", "store", "passed", "failed", "skipped", "exceptions")


def load_results(suites: Iterable[Suite]) -> dict[str, tuple[StoreResult, ...]]:
    """The stored results by name of the suite."""
    files = {suite: suite.folder / RESULTS for suite in suites}
    return {
        suite.name: results_from_json(suite, file.read_text("utf-8"))
        for suite, file in files.items()
        if file.exists()
    }


def render_page(suites: Mapping[str, Suite], results: Mapping[str, Sequence[StoreResult]]) -> str:
    """The page; suites without results are omitted."""
    lines = [_INTRODUCTION, _row(_COLUMNS), _row(("---",) * 3 + ("--:",) * 4)]
    for name in sorted(results):
        lines += [_row(_cells(suites[name], result)) for result in results[name]]
    lines.append("")
    for name in sorted(results):
        lines += _exceptions(suites[name], results[name])
    return "\n".join(lines).rstrip() + "\n"


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
