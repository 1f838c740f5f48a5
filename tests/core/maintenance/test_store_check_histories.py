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


def finding_texts(findings: FindingList) -> list[str]:
    return [f"{item.severity}: {item.subject}: {item.text}" for item in findings.items]


async def build_pruned_history(store: SqliteStore) -> Tables:
    """A run holds the third of nine versions; pruning retains two more."""
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


def build_tables(build: Callable[[SqliteStore], Any]) -> Tables:
    async def open_and_build() -> Tables:
        with TemporaryDirectory() as directory:
            async with open_store(File(directory) / "carrel.db") as store:
                tables: Tables = await build(store)
                return tables

    return asyncio.run(open_and_build())


def test_pruned_versions_are_no_gap_but_a_version_of_a_kept_run_must_exist() -> None:
    tables = build_tables(build_pruned_history)
    versions = [row[2] for row in tables["version"]]
    assert versions == [3, 8, 9]
    assert finding_texts(check_tables(tables, grace=1)) == []

    tables["version"].pop(0)

    [finding] = finding_texts(check_tables(tables, grace=1))
    assert "versions 1 to 7 are missing, although a kept run can see one" in finding


def test_only_a_gap_from_after_the_policy_change_is_reported() -> None:
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

    tables = build_tables(build)
    assert [row[2] for row in tables["version"]] == [4, 5, 6, 7]
    assert finding_texts(check_tables(tables, grace=99 * CLOCK_SKEW_MS)) == []

    del tables["version"][2]

    assert (
        "version 6 is missing" in finding_texts(check_tables(tables, grace=99 * CLOCK_SKEW_MS))[0]
    )


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put"] * 6 + ["drop", "run", "release", "policy", "collect", "fact"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


async def history(store: SqliteStore, steps: Sequence[Step], keep: int = 2) -> Tables:
    """Apply the steps, one hour apart."""
    runs: list[Run] = []
    for n, (action, number) in enumerate([("policy", keep - 1), *steps]):
        at = NOW + n * 3_600_000
        scope, path = (AGENT, TEMPLATE)[number % 2], (SOUL, RULES)[number // 2]
        if action in {"put", "drop"}:
            text = f"text {n}" if action == "put" else None
            run = runs[-1].id if runs else None
            await put_text(store, text, scope, path, at=at, max_versions=keep, run=run)
        elif action == "run":
            runs.append(await start_run(store, f"run_{n}", AGENT, TEMPLATE))
        elif action == "release" and runs:
            released = runs.pop(number % len(runs))
            assert await store.runs.update(replace(released, snapshot_kept=False), released)
        elif action == "policy":
            keep = number + 1
            body = {"limits": {"maxVersions": keep}}
            await apply_change(
                store, RecordChange("acme", RecordType.POLICY, "policy", body), at=at
            )
        elif action == "collect":
            await store.maintenance.collect(at, grace_ms=0, event_retention_ms=3_600_000)
        elif action == "fact":
            person = {"n": n} if number else None
            await apply_change(
                store, RecordChange("acme", RecordType.PERSON, f"per_{number}", person), at=at
            )
    return await rows_of(store)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_store_changed_only_by_commits_is_clean(steps: Sequence[Step]) -> None:
    tables = build_tables(lambda store: history(store, steps))

    findings = check_tables(tables)

    assert findings.is_clean, finding_texts(findings)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    STEPS.filter(lambda steps: any(action == "put" for action, _ in steps)),
    st.sampled_from(["scope", "content", "entry", "version"]),
    st.randoms(use_true_random=False),
)
def test_any_lost_row_of_a_tree_is_reported(steps: Sequence[Step], table: str, random: Any) -> None:
    """Without runs and with a single policy, no loss has another explanation."""
    plain = [step for step in steps if step[0] not in {"run", "release", "policy", "collect"}]
    tables = build_tables(lambda store: history(store, [*plain, ("collect", 0)]))

    tables[table].remove(random.choice(tables[table]))

    assert not check_tables(tables).is_clean
