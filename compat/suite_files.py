"""Suites, declared in `suites/<name>/suite.toml`."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

FOLDER: Final = File(__file__).parent / "suites"
DECLARATION: Final = "suite.toml"
RESULTS: Final = "results.json"
STORES: Final = ("sqlite", "postgres+s3")
DEFAULT_TIMEOUT_SECONDS: Final = 900
_FIELDS: Final = frozenset(
    {"title", "runtime", "package", "source", "files", "pytest", "exceptions", "stores"}
) | {"timeout", "environment"}


class InvalidSuite(Exception):
    """The declaration of a suite is incomplete or contradicts itself."""


@dataclass(frozen=True, slots=True)
class ExpectedFailure:
    """Tests that Carrel does not pass or that cannot apply, and the reason."""

    tests: tuple[str, ...]
    """Ids; `*`, `?` stand for any characters, brackets for themselves."""
    reason: str
    stores: tuple[str, ...] = STORES

    def applies_to(self, test: str, store: str) -> bool:
        return store in self.stores and any(matches(test, pattern) for pattern in self.tests)


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite: what is run, in which environment, and the failures that are argued."""

    name: str
    title: str
    runtime: str
    """Environment that it runs in: `runtimes/<runtime>.in`."""
    package: str
    """Package whose version the table shows."""
    pytest: tuple[str, ...]
    """Arguments of pytest; the working directory has the files of the suite."""
    source: str | None = None
    """Package whose source distribution has the tests; None if they are in the wheel or ours."""
    files: tuple[str, ...] = ()
    """Paths in the source distribution that are copied, as patterns."""
    stores: tuple[str, ...] = STORES
    exceptions: tuple[ExpectedFailure, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    timeout: int = DEFAULT_TIMEOUT_SECONDS

    @property
    def folder(self) -> File:
        return FOLDER / self.name

    def exception_of(self, test: str, store: str) -> ExpectedFailure | None:
        return next((item for item in self.exceptions if item.applies_to(test, store)), None)


def matches(test: str, pattern: str) -> bool:
    """Whether a test's id fits a pattern in which brackets have no meaning."""
    return fnmatch.fnmatchcase(test, re.sub(r"\[", "[[]", pattern))


def parse_suite(name: str, text: str) -> Suite:
    """Raises InvalidSuite."""
    table = tomllib.loads(text)
    if unknown := sorted(table.keys() - _FIELDS):
        raise InvalidSuite(f"{name}: unknown fields: {', '.join(unknown)}")
    if missing := sorted({"title", "runtime", "package", "pytest"} - table.keys()):
        raise InvalidSuite(f"{name}: missing fields: {', '.join(missing)}")
    if bool(table.get("source")) != bool(table.get("files")):
        raise InvalidSuite(f"{name}: source and files are given together")
    stores = _parse_stores(name, table.get("stores", STORES))
    return Suite(
        name=name,
        **{field: table[field] for field in ("title", "runtime", "package")},
        pytest=tuple(table["pytest"]),
        source=table.get("source"),
        files=tuple(table.get("files", ())),
        stores=stores,
        exceptions=tuple(_parse_exception(name, row) for row in table.get("exceptions", ())),
        environment=tuple(sorted(table.get("environment", {}).items())),
        timeout=table.get("timeout", DEFAULT_TIMEOUT_SECONDS),
    )


def _parse_exception(name: str, row: dict[str, Any]) -> ExpectedFailure:
    reason = " ".join(str(row.get("reason", "")).split())
    if not row.get("tests") or not reason:
        raise InvalidSuite(f"{name}: an exception needs tests and a reason")
    stores = _parse_stores(name, row.get("stores", STORES))
    return ExpectedFailure(tuple(row["tests"]), reason, stores)


def _parse_stores(name: str, stores: Any) -> tuple[str, ...]:
    if unknown := set(stores) - set(STORES):
        raise InvalidSuite(f"{name}: unknown stores: {', '.join(sorted(unknown))}")
    return tuple(stores)


def load_suites() -> dict[str, Suite]:
    """All suites by name. Raises InvalidSuite."""
    declarations = sorted(FOLDER.glob(f"*/{DECLARATION}"))
    return {
        file.parent.name: parse_suite(file.parent.name, file.read_text("utf-8"))
        for file in declarations
    }
