"""PostgreSQL query plans of the overview and the inbox: they read by key and never whole tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import asyncpg
import pytest

from carrel.adapters.postgres.database import STATEMENTS

pytestmark = pytest.mark.anyio

ARGUMENTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "tallies_of_names": ("acme", "files", ["SOUL.md"]),
    "tallies_since": ("acme", "runs", "00400000"),
    "tally_total": ("acme", "memory", "020000"),
    "count_records": (["status:requested"], "acme", "approval"),
    "unreported_runs": (0, 500),
    **{
        f"tallies_of_agents of {kind}": ("acme", kind, ["agt_1", "agt_2"], "")
        for kind in ("runs", "prompts", "memory", "promotion")
    },
}
"""Arguments of each statement; a word after `of` tells calls of one apart."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def iter_scans(node: Mapping[str, Any]) -> Iterator[str]:
    """Tables that a plan reads from their first row to their last."""
    if node["Node Type"] == "Seq Scan":
        yield node["Relation Name"]
    for child in node.get("Plans", ()):
        yield from iter_scans(child)


async def test_counts_are_read_by_key(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    scans = {}
    try:
        # Empty tables are scanned whatever the indexes; this leaves no scan that an index can save.
        await connection.execute("SET enable_seqscan = off")
        for name, arguments in ARGUMENTS.items():
            statement = STATEMENTS[name.partition(" ")[0]]
            plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *arguments)
            scans[name] = list(iter_scans(json.loads(plan)[0]["Plan"]))
    finally:
        await connection.close()
    assert scans == {name: [] for name in ARGUMENTS}
