"""Store checks of histories: pruned versions, kept runs and lost rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.strategies_rows import (
    AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    Tables,
    apply_change,
    check_tables,
    put_text,
    rows_of,
    start_run,
)

from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.tree_check import CLOCK_SKEW_MS
from carrel.core.runs import Run
from carrel.core.store.record import RecordChange, RecordType


def told(findings: FindingList) -> list[str]:
    return [f"{each.severity}: {each.subject}: {each.text}" for each in findings.items]


async def held(store: SqliteStore) -> Tables:
    """A run stands at the third of nine versions; two are kept beside it."""
    body = {"limits": {"maxVersions": 2}}
    await apply_change(
        store,
        RecordChange("acme", RecordType.POLICY, "policy", body, 0),
        at=NOW - 2 * CLOCK_SKEW_MS,
    )
    for n in range(9):
        await put_text(store, f"text {n}", max_versions=2)
        if n == 2:
            await start_run(store, "run_1")
    return await rows_of(store)


def made(build: Callable[[SqliteStore], Any]) -> Tables:
    async def open_and_build() -> Tables:
        with TemporaryDirectory() as directory:
            async with open_store(File(directory) / "carrel.db") as store:
                tables: Tables = await build(store)
                return tables

    return asyncio.run(open_and_build())


def test_what_pruning_leaves_is_no_gap_but_what_a_kept_run_sees_must_be_there() -> None:
    tables = made(held)
    versions = [row[2] for row in tables["version"]]
    assert versions == [3, 8, 9]
    assert told(check_tables(tables, grace=1)) == []

    tables["version"].pop(0)

    [finding] = told(check_tables(tables, grace=1))
    assert "versions 1 to 7 are missing, although a kept run can see one" in finding


def test_a_gap_from_before_the_policy_changed_is_none_but_one_from_after_is() -> None:
    async def build(store: SqliteStore) -> Tables:
        for n in range(4):
            await put_text(store, f"text {n}", max_versions=1, at=NOW - 9 * CLOCK_SKEW_MS)
        body = {"limits": {"maxVersions": 50}}
        await apply_change(
            store,
            RecordChange("acme", RecordType.POLICY, "policy", body, 0),
            at=NOW - 8 * CLOCK_SKEW_MS,
        )
        for n in range(3):
            await put_text(store, f"later {n}", max_versions=50, at=NOW)
        return await rows_of(store)

    tables = made(build)
    assert [row[2] for row in tables["version"]] == [4, 5, 6, 7]
    assert told(check_tables(tables, grace=99 * CLOCK_SKEW_MS)) == []

    del tables["version"][2]

    assert "version 6 is missing" in told(check_tables(tables, grace=99 * CLOCK_SKEW_MS))[0]


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put"] * 6 + ["drop", "run", "release", "policy", "collect", "fact"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


async def history(store: SqliteStore, steps: Sequence[Step], keep: int = 2) -> Tables:
    """Do all that, an hour apart."""
    runs: list[Run] = []
    for n, (what, number) in enumerate([("policy", keep - 1), *steps]):
        at = NOW + n * 3_600_000
        scope, path = (AGENT, TEMPLATE)[number % 2], (SOUL, RULES)[number // 2]
        if what in {"put", "drop"}:
            text = f"text {n}" if what == "put" else None
            run = runs[-1].id if runs else None
            await put_text(store, text, scope, path, at=at, max_versions=keep, run=run)
        elif what == "run":
            runs.append(await start_run(store, f"run_{n}", AGENT, TEMPLATE))
        elif what == "release" and runs:
            run_now = runs.pop(number % len(runs))
            assert await store.runs.update(replace(run_now, snapshot_kept=False), run_now)
        elif what == "policy":
            keep = number + 1
            body = {"limits": {"maxVersions": keep}}
            await apply_change(
                store, RecordChange("acme", RecordType.POLICY, "policy", body), at=at
            )
        elif what == "collect":
            await store.maintenance.collect(at, grace_ms=0, event_retention_ms=3_600_000)
        elif what == "fact":
            fact = {"n": n} if number else None
            await apply_change(
                store, RecordChange("acme", RecordType.PERSON, f"per_{number}", fact), at=at
            )
    return await rows_of(store)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_store_that_was_only_ever_committed_to_is_clean(steps: Sequence[Step]) -> None:
    tables = made(lambda store: history(store, steps))

    findings = check_tables(tables)

    assert findings.is_clean, told(findings)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    STEPS.filter(lambda steps: any(what == "put" for what, _ in steps)),
    st.sampled_from(["scope", "content", "entry", "version"]),
    st.randoms(use_true_random=False),
)
def test_whatever_row_of_a_tree_is_lost_is_missed(
    steps: Sequence[Step], table: str, chance: Any
) -> None:
    """Where no run holds anything and one policy holds throughout, no loss can be told away."""
    plain = [step for step in steps if step[0] not in {"run", "release", "policy", "collect"}]
    tables = made(lambda store: history(store, [*plain, ("collect", 0)]))

    tables[table].remove(chance.choice(tables[table]))

    assert not check_tables(tables).is_clean
