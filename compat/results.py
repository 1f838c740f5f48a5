"""Results of a suite on one store, read from pytest's JUnit XML and held against its exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from xml.etree import ElementTree

from compat.suite_files import Suite

Outcome = Literal["passed", "skipped", "failed"]
_BY_ELEMENT: Final[Mapping[str, Outcome]] = {
    "failure": "failed",
    "error": "failed",
    "skipped": "skipped",
}
_SEVERITY: Final[Mapping[Outcome, int]] = {"passed": 0, "skipped": 1, "failed": 2}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test."""

    test: str
    outcome: Outcome
    message: str = ""
    """First line of the failure, or the reason for skipping."""


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The results of a suite on one store."""

    suite: str
    store: str
    version: str
    """Version of the package that the table shows."""
    passed: int
    skipped: Mapping[str, str]
    """Reason by test."""
    exceptions: Mapping[str, str]
    """Reason by test that does not pass, as argued in the suite's declaration."""
    failures: Mapping[str, str]
    """Message by test that fails without being argued, or passes although it is."""

    @property
    def is_held(self) -> bool:
        return not self.failures

    @property
    def total(self) -> int:
        return self.passed + len(self.skipped) + len(self.exceptions) + len(self.failures)


def parse_junit(text: str) -> tuple[CaseResult, ...]:
    """The results in pytest's JUnit XML; a test that appears twice has the worst."""
    worst: dict[str, CaseResult] = {}
    for element in ElementTree.fromstring(text).iter("testcase"):
        case = _parse_case(element)
        earlier = worst.get(case.test)
        if earlier is None or _SEVERITY[case.outcome] > _SEVERITY[earlier.outcome]:
            worst[case.test] = case
    return tuple(worst.values())


def _parse_case(element: ElementTree.Element) -> CaseResult:
    test = f"{element.get('classname')}::{element.get('name')}"
    case = CaseResult(test, "passed")
    for child in element:
        outcome = _BY_ELEMENT.get(child.tag)
        if outcome is not None and _SEVERITY[outcome] > _SEVERITY[case.outcome]:
            message = (child.get("message") or child.text or "").strip()
            case = CaseResult(test, outcome, message.partition("\n")[0][:200])
    return case


def judge(suite: Suite, store: str, version: str, cases: Iterable[CaseResult]) -> StoreResult:
    """Tell argued failures from others. An argument that no test needs is a failure too."""
    passed = 0
    exceptions, skipped, failures = {}, {}, {}
    cases = tuple(cases)
    for case in cases:
        argued = suite.exception_of(case.test, store)
        if argued is not None and case.outcome == "passed":
            failures[case.test] = "passes, but is declared as an exception"
        elif argued is not None:
            exceptions[case.test] = argued.reason
        elif case.outcome == "passed":
            passed += 1
        elif case.outcome == "skipped":
            skipped[case.test] = case.message
        else:
            failures[case.test] = case.message
    failures |= dict(_unused_patterns(suite, store, cases))
    return StoreResult(suite.name, store, version, passed, skipped, exceptions, failures)


def _unused_patterns(
    suite: Suite, store: str, cases: tuple[CaseResult, ...]
) -> Iterable[tuple[str, str]]:
    for argued in suite.exceptions:
        for pattern in argued.tests if store in argued.stores else ():
            alone = type(argued)((pattern,), argued.reason, argued.stores)
            if not any(alone.applies_to(case.test, store) for case in cases):
                yield pattern, "is declared as an exception, but there is no such test"


def results_to_json(results: Iterable[StoreResult]) -> str:
    """The results of a suite, the same for the same outcomes."""
    rows = [
        {
            "store": result.store,
            "version": result.version,
            "passed": result.passed,
            "skipped": dict(sorted(result.skipped.items())),
            "exceptions": sorted(result.exceptions),
            "failures": dict(sorted(result.failures.items())),
        }
        for result in sorted(results, key=lambda result: result.store, reverse=True)
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def results_from_json(suite: Suite, text: str) -> tuple[StoreResult, ...]:
    """Stored results; the reasons are those that the suite declares now."""
    return tuple(
        StoreResult(
            suite=suite.name,
            store=row["store"],
            version=row["version"],
            passed=row["passed"],
            skipped=row["skipped"],
            exceptions={
                test: argued.reason if (argued := suite.exception_of(test, row["store"])) else ""
                for test in row["exceptions"]
            },
            failures=row["failures"],
        )
        for row in json.loads(text)
    )
