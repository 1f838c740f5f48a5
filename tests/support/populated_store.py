"""A store with rows in every table, and a snapshot of everything it returns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    SOUL,
    TEMPLATE,
    commit,
    put_text,
    read_texts,
    start_run,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path, Scope
from carrel.core.maintenance.tables import TABLES
from carrel.core.memory.recall_records import Recall
from carrel.core.runs import Audience, SnapshotLayer
from carrel.core.search.bm25 import TermWeight
from carrel.core.sessions.session import Session, SessionAppend, SpeakerRole, TranscriptEntry
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry
from carrel.core.store.idempotency import Claimed, IdempotencyKey, StoredResponse
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

NOW = time.time_ns() // 1_000_000
SECOND, HOUR = 1000, 3600 * 1000
DAY = 24 * HOUR
LARGE = "large " * 20_000
ANSWER = StoredResponse(200, "sealed")
TALK = Session(
    ACME, "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c", "marco", Audience.MAIN, "web", NOW, None, 0, NOW
)
ANSWERED = TranscriptEntry(0, NOW, SpeakerRole.ASSISTANT, "welcome")
REQUESTS = [IdempotencyKey(ACME, "PUT", f"key-{n}") for n in range(3)]
Rows = Sequence[Sequence[Any]]


async def collect_garbage(
    ports: Ports, now: int = NOW, grace: int = 0, events_kept: int = DAY
) -> int:
    """Collect garbage and return the number of removed rows."""
    removed = await ports.upkeep.collect(now, grace, events_kept)
    return sum(removed.values())


async def rows(ports: Ports) -> dict[str, Rows]:
    async with ports.upkeep.snapshot() as view:
        return {table: [r async for batch in view.rows(table) for r in batch] for table in TABLES}


async def populate(ports: Ports) -> None:
    """Add rows to every table."""
    for n, key in enumerate(REQUESTS):
        assert await ports.idempotency.claim(key, f"f{n}", NOW, 0) == Claimed()
    await ports.idempotency.complete(REQUESTS[0], ANSWER)
    for n in range(4):
        await put_text(ports, f"text {n}", at=NOW, idempotency_key=REQUESTS[1] if n == 2 else None)
    run = await start_run(ports, "run_1", AGENT, TEMPLATE)
    await put_text(ports, LARGE, path=Path("large.md"), at=NOW, run=run.id)
    [tree] = await ports.trees.read([AGENT], [SOUL])
    beneath = tree.entry(SOUL)
    assert beneath
    pin = Write(TEMPLATE, SOUL, Entry(beneath.blob, beneath.blob, "text/plain"))
    person = RecordChange(
        ACME, RecordType.PERSON, "ada", {"name": "Ada ✓"}, unique_keys=("h",), index_keys=("l",)
    )
    await ports.trees.commit([commit(pin, at=NOW, changes=(person,), author="ada", reason="é")])
    await put_text(ports, None, at=NOW)
    await ports.records.mark_used({"k1": NOW})
    body = {"content": "Ada likes tea", "agentId": "marco"}
    memory = RecordChange(ACME, RecordType.MEMORY, "mem_1", body, index_keys=("agent:marco",))
    await ports.trees.commit([commit(changes=(memory,), at=NOW)])
    await ports.recalls.record(ACME, [Recall("rcl_1", "marco", "mem_1", "tea", 1.0, NOW)])
    [_, second, *_] = await ports.events.read_after(None)
    posted = Delivery("dl_1", ACME, "wh_1", "t", b"\x00body", DeliveryState.PENDING, NOW, NOW)
    assert await ports.deliveries.enqueue(None, second.cursor, [posted])
    await ports.deliveries.record_attempts(
        [(replace(posted, attempts=1), DeliveryAttempt(NOW, PostResult(500, "x", 3)))]
    )
    await ports.sessions.start([TALK])
    entries = (TranscriptEntry(0, NOW, SpeakerRole.USER, "Grüße \0", "m", "web", "ada"), ANSWERED)
    await ports.sessions.append([SessionAppend(ACME, TALK.id, "marco", entries)])
    await ports.sessions.close(ACME, "marco", [TALK.id], NOW + 1)


async def read_everything(ports: Ports) -> list[Any]:
    """Everything that can be read from a store, in one value."""
    [run] = await ports.runs.get(ACME, ["run_1"])
    assert run
    events = await ports.events.read_after(None)
    layers: list[Scope | SnapshotLayer] = [AGENT, TEMPLATE, *run.snapshot]
    return [
        await ports.trees.read(layers),
        [await read_texts(ports, layer) for layer in layers],
        [await ports.trees.history(scope, SOUL) for scope in (AGENT, TEMPLATE)],
        run,
        [replace(event, cursor="") for event in events],
        len(await ports.events.read_after(await ports.deliveries.cursor())),
        await ports.records.list(ACME, RecordType.PERSON, index_key="l"),
        await ports.records.get_by_unique_key(["h"]),
        await ports.records.collection_revisions([(ACME, RecordType.PERSON)]),
        await ports.records.revision(),
        await ports.recalls.stats_by_memory(ACME, "marco"),
        await ports.records.find(ACME, RecordType.MEMORY, "agent:marco", [TermWeight("te", 2, 1)]),
        await ports.records.audit(ACME),
        await ports.records.last_used(["k1"]),
        await ports.sessions.get(ACME, "marco", [TALK.id]),
        await ports.sessions.read(ACME, "marco", TALK.id),
        await ports.sessions.search(ACME, "marco", [TermWeight("gruss", 2, 1)]),
        [await ports.idempotency.claim(key, f"f{n}", NOW, 0) for n, key in enumerate(REQUESTS)],
        await ports.deliveries.list(ACME, "wh_1"),
    ]
