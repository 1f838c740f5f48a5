"""Declarations of suites: what is required, and which tests an exception covers."""

from __future__ import annotations

import re

import pytest
from compat.environments import lock_file, requirements_file
from compat.sources import load_sources, parse_sources
from compat.suite_files import STORES, InvalidSuite, load_suites, matches, parse_suite
from compat.suite_run import suite_version

MINIMAL = 'title = "T"\nruntime = "r"\npackage = "p"\npytest = ["tests"]\n'


def test_minimal_declaration_runs_on_both_stores() -> None:
    suite = parse_suite("s", MINIMAL)
    assert (suite.name, suite.pytest, suite.stores) == ("s", ("tests",), STORES)
    assert suite.exception_of("tests.test_a::test_b", "sqlite") is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("speed = 1", "unknown fields: speed"),
        ('stores = ["mysql"]', "unknown stores: mysql"),
        ('source = "p"', "source and files are given together"),
        ('[[exceptions]]\ntests = ["a"]\nreason = " "', "needs tests and a reason"),
        ('[[exceptions]]\nreason = "r"', "needs tests and a reason"),
    ],
)
def test_declaration_that_contradicts_itself_is_refused(more: str, message: str) -> None:
    with pytest.raises(InvalidSuite, match=message):
        parse_suite("s", MINIMAL + more)


def test_missing_fields_are_named() -> None:
    with pytest.raises(InvalidSuite, match="missing fields: package, pytest, runtime"):
        parse_suite("s", 'title = "T"')


def test_brackets_of_a_test_id_stand_for_themselves() -> None:
    assert matches("tests.test_a::test_b[memory-1]", "*::test_b[memory-*]")
    assert not matches("tests.test_a::test_bm", "*::test_b[memory]")


def test_exception_may_be_limited_to_a_store() -> None:
    row = '[[exceptions]]\ntests = ["*::a"]\nreason = "two\\n lines"\nstores = ["sqlite"]'
    suite = parse_suite("s", MINIMAL + row)
    argued = suite.exception_of("t::a", "sqlite")
    assert argued is not None
    assert argued.reason == "two lines"
    assert suite.exception_of("t::a", "postgres+s3") is None


def test_every_suite_has_pinned_versions() -> None:
    for suite in load_suites().values():
        assert requirements_file(suite.runtime).exists(), suite.name
        assert suite_version(suite), suite.name
        assert suite.source is None or suite.source in load_sources(), suite.name


def test_locks_of_runtimes_have_no_registry_and_hash_everything() -> None:
    for runtime in {suite.runtime for suite in load_suites().values()}:
        lines = lock_file(runtime).read_text("utf-8").splitlines()
        pins = [number for number, line in enumerate(lines) if re.match(r"\S+==", line)]
        assert pins
        assert all(lines[number + 1].strip().startswith("--hash=") for number in pins)
        assert not [line for line in lines if "://" in line or line.startswith("-")]


def test_line_that_is_no_pin_is_refused() -> None:
    digest = "0" * 64
    assert parse_sources(f"a==1 --hash=sha256:{digest}\n")["a"].sha256 == digest
    with pytest.raises(ValueError, match="not a pinned source"):
        parse_sources("a>=1")
