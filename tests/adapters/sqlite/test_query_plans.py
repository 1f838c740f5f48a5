"""Query plans of SQLite: every query uses an index and never scans a whole table."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files

import pytest

from carrel.adapters.sqlite.database import STATEMENTS

UPKEEP = {
    *("old_versions", "old_contents", "outside_digests", "continue_contents", "continue_events"),
    *("collect_receipts", "collect_attempts", "collect_deliveries", "migrations"),
    *("links_and_bodies", "forget_words", "utterances_counted"),
}
"""Queries of maintenance, which scan whole tables on purpose."""


def plan(statement: str) -> list[str]:
    schema = files("carrel.adapters.sqlite").joinpath("schema.sql").read_text("utf-8")
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    parameters = ["[]"] * (max(numbered) if numbered else statement.count("?"))
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    return [row[3] for row in rows if re.match("SCAN|SEARCH", row[3])]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - UPKEEP))
def test_no_query_scans_a_table(name: str) -> None:
    scans = [step for step in plan(STATEMENTS[name]) if step.startswith("SCAN")]
    through = [step for step in scans if "VIRTUAL" not in step and step != "SCAN CONSTANT ROW"]
    everywhere = {"records_everywhere", "records_linked_everywhere"}
    assert through == (["SCAN s"] if name in everywhere else [])


@pytest.mark.parametrize(
    "name", [name for name in STATEMENTS if re.search(r"json_each\(\?\d?\) AS", STATEMENTS[name])]
)
def test_query_about_many_keys_begins_with_the_keys(name: str) -> None:
    begins = [step for step in plan(STATEMENTS[name]) if "VIRTUAL" in step or "SEARCH" in step]
    if "FROM json_each" in re.split(r"\bWHERE\b", STATEMENTS[name])[0]:
        assert "VIRTUAL" in begins[0]
