"""How SQLite means to answer: by what it is asked for, and never by going through a whole table."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files

import pytest

from carrel.adapters.sqlite.database import STATEMENTS

UPKEEP = {
    *("prunable_versions", "unreferenced_contents", "external_digests", "save_content_counter"),
    *("save_event_counter", "delete_expired_idempotency_keys", "delete_old_attempts"),
    *("delete_old_deliveries", "migrations", "index_keys_with_bodies", "delete_all_search_terms"),
    "count_session_entries",
}
"""What goes through everything, because that is its work."""


def plan(statement: str) -> list[str]:
    schema = files("carrel.adapters.sqlite").joinpath("schema.sql").read_text("utf-8")
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    given = ["[]"] * (max(numbered) if numbered else statement.count("?"))
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", given).fetchall()
    return [row[3] for row in rows if re.match("SCAN|SEARCH", row[3])]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - UPKEEP))
def test_no_question_goes_through_a_table(name: str) -> None:
    scans = [step for step in plan(STATEMENTS[name]) if step.startswith("SCAN")]
    through = [step for step in scans if "VIRTUAL" not in step and step != "SCAN CONSTANT ROW"]
    all_tenants = {"list_records_of_all_tenants", "list_records_of_all_tenants_by_index_key"}
    assert through == (["SCAN c"] if name in all_tenants else [])


@pytest.mark.parametrize(
    "name", [name for name in STATEMENTS if re.search(r"json_each\(\?\d?\) AS", STATEMENTS[name])]
)
def test_a_question_about_many_begins_with_them(name: str) -> None:
    begins = [step for step in plan(STATEMENTS[name]) if "VIRTUAL" in step or "SEARCH" in step]
    if "FROM json_each" in re.split(r"\bWHERE\b", STATEMENTS[name])[0]:
        assert "VIRTUAL" in begins[0]
