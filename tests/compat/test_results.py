"""Results of suites: outcomes in JUnit XML, and argued failures told from others."""

from __future__ import annotations

from bench.adapter_costs import GOAL, RUNTIMES
from compat.page import PAGE, load_costs, load_results, render_page
from compat.results import (
    CaseResult,
    StoreResult,
    judge,
    parse_junit,
    results_from_json,
    results_to_json,
)
from compat.suite_files import Suite, load_suites, parse_suite

JUNIT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest">
  <testcase classname="tests.test_a" name="test_passes"/>
  <testcase classname="tests.test_a" name="test_fails[1]">
    <failure message="AssertionError: 1 == 2&#10;more">…</failure></testcase>
  <testcase classname="tests.test_a" name="test_skips"><skipped message="no disk"/></testcase>
  <testcase classname="tests.test_a" name="test_ends_badly"/>
  <testcase classname="tests.test_a" name="test_ends_badly"><error>teardown</error></testcase>
</testsuite></testsuites>
"""


def suite_with(*patterns: str) -> Suite:
    text = 'title = "The suite"\nruntime = "r"\npackage = "p"\npytest = []\n'
    for pattern in patterns:
        text += f'[[exceptions]]\ntests = ["{pattern}"]\nreason = "because of {pattern}"\n'
    return parse_suite("s", text)


def result_of(suite: Suite) -> StoreResult:
    return judge(suite, "sqlite", "1.0", parse_junit(JUNIT))


def test_outcomes_are_read_and_the_worst_of_a_test_counts() -> None:
    assert parse_junit(JUNIT) == (
        CaseResult("tests.test_a::test_passes", "passed"),
        CaseResult("tests.test_a::test_fails[1]", "failed", "AssertionError: 1 == 2"),
        CaseResult("tests.test_a::test_skips", "skipped", "no disk"),
        CaseResult("tests.test_a::test_ends_badly", "failed", "teardown"),
    )


def test_failure_without_an_argument_is_a_failure() -> None:
    result = result_of(suite_with())
    assert not result.is_held
    assert (result.passed, len(result.failures), len(result.skipped)) == (1, 2, 1)


def test_argued_failure_is_an_exception() -> None:
    result = result_of(suite_with("*::test_fails[1]", "*::test_ends_badly", "*::test_skips"))
    assert result.is_held
    assert result.exceptions["tests.test_a::test_fails[1]"] == "because of *::test_fails[1]"
    assert (result.passed, len(result.exceptions), result.total) == (1, 3, 4)


def test_exception_that_passes_is_a_failure() -> None:
    result = result_of(suite_with("*::test_passes"))
    assert result.failures["tests.test_a::test_passes"].startswith("passes, but")


def test_exception_without_a_test_is_a_failure() -> None:
    assert "*::test_gone" in result_of(suite_with("*::test_gone")).failures


def test_stored_results_are_read_back_with_the_reasons_declared_now() -> None:
    suite = suite_with("*::test_fails[1]", "*::test_ends_badly")
    result = result_of(suite)
    assert results_from_json(suite, results_to_json([result])) == (result,)


def test_page_has_a_row_for_each_store_and_every_reason() -> None:
    suite = suite_with("*::test_fails[1]", "*::test_ends_badly")
    costs = [{"what": "A: get / get", "value": 0.951, "low": 0.5, "high": 1.2, "goal": "≥ 0.8"}]
    page = render_page({"s": suite}, {"s": [result_of(suite)]}, costs)
    assert "| The suite | p 1.0 | sqlite | 1 | 0 | 1 | 2 |" in page
    assert "- because of *::test_ends_badly\n  (1: `tests.test_a::test_ends_badly`)" in page
    assert "- Skipped by the suite: no disk" in page
    assert "| A: get / get | 0.95 | 0.50 … 1.20 | ≥ 0.8 |" in page


def test_page_is_generated_from_the_stored_results() -> None:
    suites = load_suites()
    results = load_results(suites.values())
    assert set(results) == set(suites), "every suite was run"
    assert PAGE.read_text("utf-8") == render_page(suites, results, load_costs())


def test_every_adapter_of_a_runtime_was_measured_and_meets_its_goal() -> None:
    runtimes = {suite.runtime for suite in load_suites().values()} - {"mcp"}
    assert set(RUNTIMES) == runtimes
    costs = load_costs()
    for name in RUNTIMES.values():
        values = [row["value"] for row in costs if row["what"].startswith(f"{name}: ")]
        assert len(values) >= 2, f"no read and write of {name}"
        assert min(values) >= GOAL, name


def test_stored_results_have_no_failures() -> None:
    suites = load_suites()
    for name, results in load_results(suites.values()).items():
        assert {result.store for result in results} == set(suites[name].stores), name
        assert all(result.is_held for result in results), name
