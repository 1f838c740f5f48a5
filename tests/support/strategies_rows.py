"""A small store as tables of rows, to be damaged and checked."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.store_check import PHASES, TREE_TABLES, StoreCheck
from carrel.core.maintenance.tables import KEY_LENGTHS, TABLES
from carrel.core.memory.recall_records import Recall
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.sessions.session import Session, SessionAppend, SpeakerRole, TranscriptEntry
from carrel.core.store.commit import Applied, Commit, Write
from carrel.core.store.entry import Entry
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

Tables = dict[str, list[list[Any]]]

NOW = 1_800_000_000_000
AGENT = Scope("acme", ScopeKind.AGENT, "marco")
TEMPLATE = Scope("acme", ScopeKind.TEMPLATE, "sales")
SOUL, RULES = Path("SOUL.md"), Path("GUARDRAILS.md")


def check_tables(tables: Tables, *, now: int = NOW, grace: int = 0) -> FindingList:
    """The findings of the check of these rows."""
    examination = StoreCheck(now, grace)
    for phase in PHASES:
        if phase == TREE_TABLES:
            woven = [(table, row) for table in TREE_TABLES for row in tables[table]]
            woven.sort(key=lambda tagged: tuple(tagged[1][: KEY_LENGTHS[tagged[0]]]))
            examination.check_trees(woven)
        else:
            examination.check_rows(phase[0], tables[phase[0]])
    return examination.finish()


async def rows_of(store: SqliteStore) -> Tables:
    async with store.maintenance.snapshot() as frozen:
        return {
            table: [list(row) async for rows in frozen.rows(table) for row in rows]
            for table in TABLES
        }


async def put_text(
    store: SqliteStore, text: str | None, scope: Scope = AGENT, path: Path = SOUL, **more: Any
) -> None:
    """Make one write that must succeed; None writes a tombstone."""
    base, entry = more.pop("base", None), None
    if text is not None:
        [blob] = await store.blobs.put([text.encode()])
        entry = Entry(blob, base)
    facts = {"author": "ada", "reason": "to see", "at": NOW, **more}
    [outcome] = await store.trees.commit([Commit((Write(scope, path, entry),), **facts)])
    assert isinstance(outcome, Applied), outcome


async def apply_change(store: SqliteStore, *changes: RecordChange, at: int = NOW) -> None:
    [outcome] = await store.trees.commit([Commit((), "ada", "to see", at, changes=changes)])
    assert isinstance(outcome, Applied), outcome


async def start_run(store: SqliteStore, id: str, *layers: Scope) -> Run:
    run = Run(id, "acme", AGENT, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW)
    [started] = await store.runs.start([(run, layers or (AGENT,))])
    return started


@cache
def _build_tables() -> Tables:
    """A store with every table: histories, a tombstone, a base, a run, records, a delivery."""

    async def build() -> Tables:
        with TemporaryDirectory() as directory:
            objects = DirectoryBlobStore(File(directory) / "objects")
            async with open_store(File(directory) / "carrel.db", objects=objects) as store:
                await _fill(store)
                return await rows_of(store)

    return anyio.run(build)


async def _fill(store: SqliteStore) -> None:
    await put_text(store, "beneath", TEMPLATE)
    [tree] = await store.trees.read([TEMPLATE])
    entry = tree.entry(SOUL)
    assert entry
    for text in ("one", "two", "three"):
        await put_text(store, text, base=entry.blob)
    await start_run(store, "run_1", AGENT, TEMPLATE)
    await put_text(store, "x" * 100_000, path=Path("large.txt"), run="run_1")
    await put_text(store, "rules", path=RULES)
    await put_text(store, None, path=RULES)
    body = {"name": "Ada"}
    await apply_change(
        store,
        RecordChange(
            "acme", RecordType.PERSON, "per_1", body, 0, ("acme/person/email:ada@acme",), ("all",)
        ),
        RecordChange("acme", RecordType.POLICY, "policy", {"limits": {"maxVersions": 3}}, 0),
        at=NOW - 1_000_000,
    )
    recalls = [Recall(f"rcl_{n}", "marco", "mem_1", "tea", 1.0, NOW) for n in range(2)]
    await store.recalls.record("acme", recalls)
    await store.records.mark_used({"key_1": NOW})
    delivery = Delivery("del_1", "acme", "wh_1", "t", b"{}", DeliveryState.PENDING, NOW, NOW)
    assert await store.deliveries.enqueue(None, "2", [delivery])
    await store.deliveries.record_attempts(
        [(delivery, DeliveryAttempt(NOW, PostResult(None, "no", 3)))]
    )
    ids = [f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in range(2)]
    talks = [Session("acme", id, "marco", Audience.MAIN, "", NOW, None, 0, NOW) for id in ids]
    await store.sessions.start(talks)
    entries = tuple(TranscriptEntry(0, NOW, SpeakerRole.USER, f"said {n}") for n in range(3))
    await store.sessions.append([SessionAppend("acme", id, "marco", entries) for id in ids])


def intact_tables() -> Tables:
    """A copy that a test may damage."""
    return copy.deepcopy(_build_tables())


async def iterate(rows: Sequence[Any]) -> AsyncIterator[Any]:
    for row in rows:
        yield row


def find(tables: Tables, table: str, is_match: Callable[[list[Any]], bool]) -> list[Any]:
    """The only row of a table that matches."""
    [row] = [row for row in tables[table] if is_match(row)]
    return row
