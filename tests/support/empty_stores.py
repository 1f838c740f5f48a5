"""Whole stores of either kind, filled with something of everything, for tests of upkeep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

from msgspec import structs
from tests.support.services import files

from carrel.actions.maintenance import backup
from carrel.actions.maintenance.integrity import check_store
from carrel.adapters import postgres, sqlite
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.maintenance.tables import TABLES
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.sessions import Session, SessionAppend, SpeakerRole, TranscriptEntry
from carrel.core.store.commit import Applied, Commit, Write
from carrel.core.store.entry import Entry, Head
from carrel.core.store.event import APPROVAL_REQUESTED, EventDraft
from carrel.core.store.idempotency import IdempotencyKey, StoredResponse
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult
from carrel.ports import LargeBlobStore

NOW: Final = 1_800_000_000_000
HOUR: Final = 3_600_000
AGENT: Final = Scope("acme", ScopeKind.AGENT, "marco")
TEMPLATE: Final = Scope("acme", ScopeKind.TEMPLATE, "sales")
SOUL: Final = Path("SOUL.md")
TALKS: Final = [f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in range(2)]
LARGE: Final = Path("large.txt")


@dataclass(frozen=True)
class Shelter:
    """A store, and where it keeps large bytes."""

    store: Any
    objects: LargeBlobStore | None


class Stores:
    """Makes as many empty stores as a test wants, each in a place of its own."""

    def __init__(self, directory: File, database: Callable[[], str]) -> None:
        self._directory, self._database = directory, database
        self._made = 0

    @asynccontextmanager
    async def open(
        self, kind: str, objects: bool | LargeBlobStore = True
    ) -> AsyncIterator[Shelter]:
        self._made += 1
        directory = self._directory / f"store-{self._made}"
        place = DirectoryBlobStore(directory / "objects") if objects is True else objects or None
        if kind == "sqlite":
            async with sqlite.open_store(
                files.fresh(directory / "carrel.db"), objects=place
            ) as store:
                yield Shelter(store, place)
        else:
            url = await asyncio.to_thread(self._database)
            async with postgres.open_store(url, objects=place) as pooled:
                yield Shelter(pooled, place)


async def say(
    shelter: Shelter, text: str | None, path: Path = SOUL, scope: Scope = AGENT, **more: Any
) -> Head:
    """Make one write that must succeed; None leaves a tombstone."""
    entry = None
    if text is not None:
        [blob] = await shelter.store.blobs.put([text.encode()])
        entry = Entry(blob)
    return await commit(shelter, Write(scope, path, entry), **more)


async def commit(shelter: Shelter, write: Write, **more: Any) -> Head:
    facts = {"author": "ada", "reason": "to see", "at": NOW, **more}
    [outcome] = await shelter.store.trees.commit([Commit((write,), **facts)])
    assert isinstance(outcome, Applied), outcome
    return outcome.heads[0]


async def keep_only(shelter: Shelter, versions: int) -> None:
    """The tenant's policy, long before anything else."""
    body = {"limits": {"maxVersions": versions}}
    changes = (RecordChange("acme", RecordType.POLICY, "policy", body),)
    policy = Commit((), "ada", "policy", NOW - 9 * HOUR, changes=changes)
    [outcome] = await shelter.store.trees.commit([policy])
    assert isinstance(outcome, Applied)


async def fill(shelter: Shelter, *, talks: bool = True) -> None:
    """Histories, a tombstone, large bytes, runs, facts, a receipt, deliveries, events."""
    store = shelter.store
    for n in range(3):
        await say(shelter, f"shared {n} é\n", scope=TEMPLATE)
    for n in range(4):
        await say(shelter, f"own {n}")
    run = Run("run_1", "acme", AGENT, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW)
    other = structs.replace(run, id="run_2", variables={"NAME": "Ada"})
    [started, ended] = await store.runs.start([(run, (AGENT, TEMPLATE)), (other, (AGENT,))])
    done = structs.replace(ended, status=RunStatus.COMPLETED, ended_at=NOW, snapshot_kept=False)
    assert await store.runs.update(done, ended)
    await say(shelter, "later", run=started.id)
    await say(shelter, None, path=Path("gone.md"))
    await say(shelter, "x", path=Path("gone.md"))
    await say(shelter, None, path=Path("gone.md"))
    for n in range(3):
        await say(shelter, f"{n}" * 100_000, path=LARGE)
    changes = (
        RecordChange(
            "acme", RecordType.PERSON, "per_1", {"name": "Adä"}, 0, ("acme/person/email:a",), ("x",)
        ),
        RecordChange("acme", RecordType.SECRET, "sec_1", {"sealed": "v1.sealed"}, 0),
    )
    [changed] = await store.trees.commit([Commit((), "ada", "facts", NOW, changes=changes)])
    assert isinstance(changed, Applied)
    event = EventDraft("acme", APPROVAL_REQUESTED, {"approvalId": "apr_1"})
    [told] = await store.trees.commit(
        [Commit((), "ada", "ask", NOW, events=(event,), run=started.id)]
    )
    assert isinstance(told, Applied)
    await store.records.mark_used({"key_1": NOW})
    key = IdempotencyKey("acme", "PUT /x", "k")
    await store.idempotency.claim(key, "print", NOW, 0)
    await store.idempotency.complete(key, StoredResponse(200, "sealed"))
    delivery = Delivery("del_1", "acme", "wh_1", "t", b"\x00\xff", DeliveryState.PENDING, NOW, NOW)
    events = await store.events.read_after(None, limit=4)
    assert await store.deliveries.enqueue(None, events[-1].cursor, [delivery])
    await store.deliveries.record_attempts(
        [(delivery, DeliveryAttempt(NOW, PostResult(None, "no", 3)))]
    )
    if talks:
        await talk(store)


async def talk(store: Any) -> None:
    """Say something in one session, and nothing in another."""
    talks = [Session("acme", id, "marco", Audience.MAIN, "", NOW, None, 0, NOW) for id in TALKS]
    await store.sessions.start(talks)
    said = tuple(TranscriptEntry(0, NOW + n, SpeakerRole.USER, f"said {n} é") for n in range(3))
    await store.sessions.append([SessionAppend("acme", TALKS[0], "marco", said)])


async def rows_of(shelter: Shelter) -> Mapping[str, Sequence[Sequence[Any]]]:
    async with shelter.store.maintenance.snapshot() as frozen:
        return {
            table: [tuple(row) async for rows in frozen.rows(table) for row in rows]
            for table in TABLES
        }


async def told(shelter: Shelter, *, now: int = NOW, grace: int = HOUR) -> list[str]:
    """What the doctor says."""
    findings = await check_store(shelter.store.maintenance, shelter.objects, now=now, grace=grace)
    return [f"{each.severity}: {each.subject}: {each.text}" for each in findings.items]


async def shown(shelter: Shelter) -> Mapping[str, Any]:
    """What readers see: files now and frozen, history, facts, runs, what is to be delivered."""
    store = shelter.store
    [run, released] = await store.runs.get("acme", ["run_1", "run_2"])
    trees = await store.trees.read([AGENT, TEMPLATE, *run.snapshot])
    entries = [head.entry for tree in trees for head in tree.heads.values() if head.entry]
    contents = await store.blobs.get([entry.blob for entry in entries])
    due = await store.events.read_after(await store.deliveries.cursor())
    return {
        "trees": trees,
        "contents": contents,
        "history": [await store.trees.history(AGENT, path) for path in (SOUL, LARGE)],
        "runs": (run, released),
        "person": await store.records.get_by_unique_key(["acme/person/email:a"]),
        "linked": await store.records.list("acme", RecordType.PERSON, index_key="x"),
        "audit": await store.records.audit("acme"),
        "shelves": await store.records.collection_revisions(
            [("acme", RecordType.PERSON), ("acme", RecordType.SECRET)]
        ),
        "used": await store.records.last_used(["key_1"]),
        "deliveries": await store.deliveries.list("acme", "wh_1"),
        "events": [
            (e.type, e.payload, e.run, e.sequence) for e in await store.events.read_after(None)
        ],
        "sessions": await store.sessions.list("acme", "marco"),
        "said": await store.sessions.read("acme", TALKS[0]),
        "found": await store.sessions.search("acme", "marco", ["said"]),
        "due": [(e.type, e.payload, e.run, e.sequence) for e in due],
    }


async def take(shelter: Shelter, file: File, **more: Any) -> backup.BackupResult:
    return await backup.create_backup(
        shelter.store.maintenance, shelter.objects, file, now=NOW, **more
    )


async def restore(shelter: Shelter, file: File) -> list[str]:
    """Restore, and return what the doctor said then."""
    store = shelter.store
    _, findings = await backup.restore(file, store.maintenance, shelter.objects, now=NOW)
    return [f"{each.subject}: {each.text}" for each in findings.items]


def content(file: File) -> bytes:
    return file.read_bytes()


def fill_file(file: File, content: bytes) -> None:
    file.write_bytes(content)
