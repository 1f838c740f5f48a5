"""Empty stores of both kinds, and data for them, for the maintenance tests."""

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
from carrel.core.search.bm25 import TermWeight
from carrel.core.sessions.session import Session, SessionAppend, SpeakerRole, TranscriptEntry
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
SESSION_IDS: Final = [f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in range(2)]
LARGE: Final = Path("large.txt")


@dataclass(frozen=True)
class OpenedStore:
    """A store and its large-blob store."""

    store: Any
    objects: LargeBlobStore | None


class Stores:
    """Creates empty stores, each in its own directory or database."""

    def __init__(self, directory: File, database: Callable[[], str]) -> None:
        self._directory, self._database = directory, database
        self._store_count = 0

    @asynccontextmanager
    async def open(
        self, kind: str, objects: bool | LargeBlobStore = True
    ) -> AsyncIterator[OpenedStore]:
        self._store_count += 1
        directory = self._directory / f"store-{self._store_count}"
        place = DirectoryBlobStore(directory / "objects") if objects is True else objects or None
        if kind == "sqlite":
            async with sqlite.open_store(
                files.fresh(directory / "carrel.db"), objects=place
            ) as store:
                yield OpenedStore(store, place)
        else:
            url = await asyncio.to_thread(self._database)
            async with postgres.open_store(url, objects=place) as pooled:
                yield OpenedStore(pooled, pooled.objects)


async def put_text(
    shelter: OpenedStore, text: str | None, path: Path = SOUL, scope: Scope = AGENT, **more: Any
) -> Head:
    """Make one write that must succeed; None writes a tombstone."""
    entry = None
    if text is not None:
        [blob] = await shelter.store.blobs.put([text.encode()])
        entry = Entry(blob)
    return await commit(shelter, Write(scope, path, entry), **more)


async def commit(shelter: OpenedStore, write: Write, **more: Any) -> Head:
    facts = {"author": "ada", "reason": "to see", "at": NOW, **more}
    [outcome] = await shelter.store.trees.commit([Commit((write,), **facts)])
    assert isinstance(outcome, Applied), outcome
    return outcome.heads[0]


async def keep_only(shelter: OpenedStore, versions: int) -> None:
    """Set the tenant's policy, at a time before all other commits."""
    body = {"limits": {"maxVersions": versions}}
    changes = (RecordChange("acme", RecordType.POLICY, "policy", body),)
    policy = Commit((), "ada", "policy", NOW - 9 * HOUR, changes=changes)
    [outcome] = await shelter.store.trees.commit([policy])
    assert isinstance(outcome, Applied)


async def fill(shelter: OpenedStore, *, sessions: bool = True) -> None:
    """Histories, a tombstone, large blobs, runs, records, idempotency keys, deliveries, events."""
    store = shelter.store
    for n in range(3):
        await put_text(shelter, f"shared {n} é\n", scope=TEMPLATE)
    for n in range(4):
        await put_text(shelter, f"own {n}")
    run = Run("run_1", "acme", AGENT, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW)
    other = structs.replace(run, id="run_2", variables={"NAME": "Ada"})
    [started, ended] = await store.runs.start([(run, (AGENT, TEMPLATE)), (other, (AGENT,))])
    done = structs.replace(ended, status=RunStatus.COMPLETED, ended_at=NOW, snapshot_kept=False)
    assert await store.runs.update(done, ended)
    await put_text(shelter, "later", run=started.id)
    await put_text(shelter, None, path=Path("gone.md"))
    await put_text(shelter, "x", path=Path("gone.md"))
    await put_text(shelter, None, path=Path("gone.md"))
    for n in range(3):
        await put_text(shelter, f"{n}" * 100_000, path=LARGE)
    changes = (
        RecordChange(
            "acme", RecordType.PERSON, "per_1", {"name": "Adä"}, 0, ("acme/person/email:a",), ("x",)
        ),
        RecordChange("acme", RecordType.SECRET, "sec_1", {"sealed": "v1.sealed"}, 0),
    )
    [changed] = await store.trees.commit([Commit((), "ada", "facts", NOW, changes=changes)])
    assert isinstance(changed, Applied)
    event = EventDraft("acme", APPROVAL_REQUESTED, {"approvalId": "apr_1"})
    [outcome] = await store.trees.commit(
        [Commit((), "ada", "ask", NOW, events=(event,), run=started.id)]
    )
    assert isinstance(outcome, Applied)
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
    if sessions:
        await add_sessions(store)


async def add_sessions(store: Any) -> None:
    """Add entries to one session, and none to another."""
    sessions = [
        Session("acme", id, "marco", Audience.MAIN, "", NOW, None, 0, NOW) for id in SESSION_IDS
    ]
    await store.sessions.start(sessions)
    entries = tuple(TranscriptEntry(0, NOW + n, SpeakerRole.USER, f"said {n} é") for n in range(3))
    await store.sessions.append([SessionAppend("acme", SESSION_IDS[0], "marco", entries)])


async def rows_of(shelter: OpenedStore) -> Mapping[str, Sequence[Sequence[Any]]]:
    async with shelter.store.maintenance.snapshot() as frozen:
        return {
            table: [tuple(row) async for rows in frozen.rows(table) for row in rows]
            for table in TABLES
        }


async def check_findings(shelter: OpenedStore, *, now: int = NOW, grace: int = HOUR) -> list[str]:
    """The findings of the integrity check."""
    findings = await check_store(shelter.store.maintenance, shelter.objects, now=now, grace=grace)
    return [f"{finding.severity}: {finding.subject}: {finding.text}" for finding in findings.items]


async def read_view(shelter: OpenedStore) -> Mapping[str, Any]:
    """What readers see: files, snapshots, history, records, runs and pending deliveries."""
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
        "entries": await store.sessions.read("acme", "marco", SESSION_IDS[0]),
        "found": await store.sessions.search("acme", "marco", [TermWeight("said", 2, 1)]),
        "due": [(e.type, e.payload, e.run, e.sequence) for e in due],
    }


async def take_backup(shelter: OpenedStore, file: File, **more: Any) -> backup.BackupResult:
    return await backup.create_backup(
        shelter.store.maintenance, shelter.objects, file, now=NOW, **more
    )


async def restore(shelter: OpenedStore, file: File) -> list[str]:
    """Restore a backup and return the findings of its check."""
    store = shelter.store
    _, findings = await backup.restore(file, store.maintenance, shelter.objects, now=NOW)
    return [f"{finding.subject}: {finding.text}" for finding in findings.items]


def content(file: File) -> bytes:
    return file.read_bytes()


def fill_file(file: File, content: bytes) -> None:
    file.write_bytes(content)
