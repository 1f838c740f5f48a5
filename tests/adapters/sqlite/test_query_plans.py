"""SQLite query plans: statements search by key and never scan a table."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files

import pytest

from carrel.adapters.sqlite.database import STATEMENTS

MAINTENANCE = {
    *("prunable_versions", "unreferenced_contents", "external_digests", "save_content_counter"),
    *("save_event_counter", "delete_expired_idempotency_keys", "delete_old_attempts"),
    *("delete_old_deliveries", "migrations", "index_keys_with_bodies", "delete_all_search_terms"),
    *("count_session_entries", "orphans", "unreferenced_among", "unreferenced_bodies"),
    *("external_among", "wrong_tallies", "delete_tallies", "rebuild_tallies"),
    "latest_tenant_event",  # walks back to the tenant's newest event, in a thread
}
"""Statements that read whole tables by design."""
SCANS = {
    "list_records_of_all_tenants": ["SCAN c"],
    "list_records_of_all_tenants_by_index_key": ["SCAN c"],
    "tallies_of_agents": ["SCAN n"],  # of its own rows
    "pruned_paths": ["SCAN n"],  # of its own rows
    "occupying_paths": [*("SCAN f", "SCAN follower", "SCAN f"), *["SCAN s"] * 3],  # of its own rows
}


def plan(statement: str) -> list[str]:
    schema = files("carrel.adapters.sqlite").joinpath("schema.sql").read_text("utf-8")
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    parameters = ["[]"] * (max(numbered) if numbered else statement.count("?"))
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    return [row[3] for row in rows if re.match("SCAN|SEARCH", row[3])]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - MAINTENANCE))
def test_statement_scans_no_table(name: str) -> None:
    scans = [step for step in plan(STATEMENTS[name]) if step.startswith("SCAN")]
    through = [step for step in scans if not re.search(r"VIRTUAL|CONSTANT ROW|\(subquery", step)]
    assert through == SCANS.get(name, [])


@pytest.mark.parametrize(
    "name", [name for name in STATEMENTS if re.search(r"json_each\(\?\d?\) AS", STATEMENTS[name])]
)
def test_batch_statement_starts_with_the_requested_keys(name: str) -> None:
    begins = [step for step in plan(STATEMENTS[name]) if "VIRTUAL" in step or "SEARCH" in step]
    if "FROM json_each" in re.split(r"\bWHERE\b", STATEMENTS[name])[0]:
        assert "VIRTUAL" in begins[0]
