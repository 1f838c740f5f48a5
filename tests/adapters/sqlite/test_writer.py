"""The SQLite writer's caches are correct whatever happens to the file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path as File

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    FOREIGN_AGENT,
    NOW,
    TEMPLATE,
    assert_applied,
    commit,
    put_text,
    read_texts,
    try_write,
    write,
)
from tests.support.empty_stores import OpenedStore, check_findings, keep_only

from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.core.identifiers import Path, Scope
from carrel.core.store.commit import Applied, Commit, Expect
from carrel.core.store.record import CollectionRevision, RecordChange, RecordType

pytestmark = pytest.mark.anyio

POLICY = RecordChange(ACME, RecordType.POLICY, "policy", {})
LATER = NOW + 10**10

DYING = """
import asyncio, os, sys
from pathlib import Path as File
from carrel.adapters.sqlite import open_store
from carrel.core.identifiers import ScopeKind, Path, Scope
from carrel.core.store.commit import Commit, Write
from carrel.core.store.entry import Entry

async def main():
    async with open_store(File(sys.argv[1])) as store:
        [blob] = await store.blobs.put([b"never"])
        scopes = [Scope("acme", ScopeKind.AGENT, name) for name in ("marco", "new")]
        writes = [Write(scope, Path("x"), Entry(blob)) for scope in scopes]
        def work(db, batch):
            batch.apply(Commit(tuple(writes), "ada", "to see", 1))
            batch.flush()
            os._exit(9)
        await store.writer.submit(work)

asyncio.run(main())
"""


class FailedJob(Exception):
    """Raised by a job that fails."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def file(tmp_path: File) -> File:
    return tmp_path / "carrel.db"


@pytest.fixture
async def store(file: File) -> AsyncIterator[SqliteStore]:
    async with open_store(file) as opened:
        yield opened


async def ids(store: SqliteStore) -> tuple[Sequence[int], Sequence[int]]:
    """Ids of all contents and of all events."""
    contents = store.reader.db.execute("SELECT id FROM content ORDER BY id").fetchall()
    events = await store.events.read_after(None, limit=10_000)
    return [id for (id,) in contents], [int(event.cursor) for event in events]


async def integrity_problems(store: SqliteStore) -> list[str]:
    return await check_findings(OpenedStore(store, None))


async def fail_after(store: SqliteStore, *commits: Commit) -> None:
    """Apply these commits, then fail."""

    def work(_: sqlite3.Connection, batch: CommitBatch) -> None:
        for item in commits:
            batch.apply(item)
            batch.apply(
                Commit(
                    (),
                    "ada",
                    "look",
                    NOW,
                    collection_revisions=(CollectionRevision(ACME, RecordType.POLICY, 99),),
                )
            )
        raise FailedJob

    with pytest.raises(FailedJob):
        await store.writer.submit(work)


async def test_alternating_processes_assign_every_number_once(
    store: SqliteStore, file: File
) -> None:
    async with open_store(file) as other:
        heads = [await put_text((store, other)[n // 2 % 2], f"text {n}") for n in range(12)]
        new = [await put_text(writer, "x", FOREIGN_AGENT) for writer in (other, store)]

        assert [head.version for head in heads] == list(range(1, 13))
        assert [head.revision for head in heads] == list(range(1, 13))
        assert [head.revision for head in new] == [1, 2]
        for writer in (store, other):
            assert await ids(writer) == (list(range(1, 15)), list(range(1, 15)))
            assert await integrity_problems(writer) == []


async def test_concurrent_processes_assign_every_number_once(
    store: SqliteStore, file: File
) -> None:
    async with open_store(file) as other:
        rivals = [put_text((store, other)[n % 2], f"text {n}") for n in range(60)]
        heads = await asyncio.gather(*rivals)

        assert sorted(head.version for head in heads) == list(range(1, 61))
        assert sorted(head.revision for head in heads) == list(range(1, 61))
        assert await ids(store) == (list(range(1, 61)), list(range(1, 61)))
        assert await integrity_problems(other) == []


async def test_collection_revision_includes_the_writes_of_other_processes(
    store: SqliteStore, file: File
) -> None:
    async def holds(revision: int) -> bool:
        [outcome] = await store.trees.commit(
            [commit(collection_revisions=(CollectionRevision(ACME, RecordType.POLICY, revision),))]
        )
        return isinstance(outcome, Applied)

    assert await holds(0)
    async with open_store(file) as other:
        await other.trees.commit([commit(changes=(POLICY,))])
    assert not await holds(0)
    assert await holds(1)
    await store.trees.commit([commit(changes=(POLICY,))])
    assert not await holds(1)
    assert await holds(2)


async def test_quota_counts_writes_of_other_processes(store: SqliteStore, file: File) -> None:
    await put_text(store, "12345")
    async with open_store(file) as other:
        await put_text(other, "1234567890")
        await put_text(other, "x", path=Path("another"))
    await put_text(store, "123", path=Path("third"))

    [counted] = store.reader.db.execute("SELECT files, size FROM scope").fetchall()
    assert counted == (3, 14)


async def test_failing_commit_of_a_group_stops_no_other(store: SqliteStore) -> None:
    await put_text(store, "before")
    failing = fail_after(
        store, commit(await write(store, "never"), await write(store, "no", FOREIGN_AGENT))
    )
    sent = [asyncio.create_task(put_text(store, f"text {n}")) for n in range(9)]
    await failing
    heads = await asyncio.gather(*sent)

    assert sorted(head.version for head in heads) == list(range(2, 11))
    assert sorted(head.revision for head in heads) == list(range(2, 11))
    assert await ids(store) == (list(range(1, 11)), list(range(1, 11)))
    assert await read_texts(store, FOREIGN_AGENT) == {}
    assert await integrity_problems(store) == []


async def test_nothing_is_cached_from_a_failed_transaction(store: SqliteStore) -> None:
    await put_text(store, "before")
    spoilt = [await write(store, "never"), await write(store, "never", TEMPLATE)]
    await fail_after(store, commit(*spoilt, changes=(POLICY,)))

    assert await store.trees.revisions([AGENT, TEMPLATE]) == (1, 0)
    assert await store.records.revision() == 0
    outcome = await try_write(
        store, "after", collection_revisions=(CollectionRevision(ACME, RecordType.POLICY, 0),)
    )
    [head] = assert_applied(outcome).heads
    assert (head.version, head.revision) == (2, 2)
    first = await put_text(store, "first", TEMPLATE)
    assert (first.version, first.revision) == (1, 1)
    assert await read_texts(store, TEMPLATE) == {"SOUL.md": "first"}
    assert await ids(store) == ([1, 2, 3], [1, 2, 3])
    assert await integrity_problems(store) == []


async def delete_all(store: SqliteStore) -> tuple[int, int]:
    """Delete all contents and events; return the highest ids so far."""
    await put_text(store, "gone")
    await put_text(store, None, max_versions=1)
    contents, events = await ids(store)
    mark = await store.deliveries.cursor()
    assert await store.deliveries.enqueue(mark, str(events[-1]), [])
    await store.maintenance.collect(LATER, 0, 0)
    assert await ids(store) == ([], [])
    return contents[-1], events[-1]


@pytest.mark.parametrize("writer", ["the same", "another", "a later"])
async def test_deleted_ids_are_not_assigned_again(
    store: SqliteStore, file: File, writer: str
) -> None:
    await keep_only(OpenedStore(store, None), 1)
    async with open_store(file) as other:
        await put_text(other, "known")
        await put_text(other, None, max_versions=1)
        content, event = await delete_all(store)
        if writer == "a later":
            async with open_store(file) as later:
                await put_text(later, "again")
        else:
            await put_text(store if writer == "the same" else other, "again")

        assert await ids(other) == ([content + 1], [event + 1])
        assert await other.events.latest_cursor() == str(event + 1)
        assert await integrity_problems(store) == []


async def test_end_of_the_log_stays_when_its_events_are_deleted(
    store: SqliteStore, file: File
) -> None:
    _, event = await delete_all(store)

    assert await store.events.latest_cursor() == str(event)
    async with open_store(file) as later:
        assert await later.events.latest_cursor() == str(event)


async def test_process_that_dies_in_a_transaction_uses_up_no_ids(
    store: SqliteStore, file: File
) -> None:
    await put_text(store, "before")
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", DYING, str(file)], check=False
    )
    assert died.returncode == 9

    assert (await put_text(store, "after")).revision == 2
    new = Scope(ACME, AGENT.kind, "new")
    assert (await put_text(store, "first", new)).revision == 1
    assert await ids(store) == ([1, 2, 3], [1, 2, 3])
    assert await read_texts(store, AGENT) == {"SOUL.md": "after"}
    assert await integrity_problems(store) == []


async def test_group_after_a_foreign_write_reads_all_its_paths_at_once(
    store: SqliteStore, file: File
) -> None:
    paths = [Path(f"notes/{n}.md") for n in range(20)]
    for path in paths[:15]:
        await put_text(store, "first", path=path)
    async with open_store(file) as other:
        await put_text(other, "second", path=paths[0])
        await put_text(other, None, path=paths[1])
    queries: list[str] = []
    store.writer._db.set_trace_callback(queries.append)
    outcomes = await asyncio.gather(
        *(
            try_write(store, "mine", path=path, expects=(Expect(AGENT, path, int(n < 15)),))
            for n, path in enumerate(paths)
        ),
        try_write(store, "twice", path=paths[9], expects=(Expect(AGENT, paths[9], 1),)),
    )
    store.writer._db.set_trace_callback(None)
    refused = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Applied)]
    assert refused == [0, 1, 20]
    assert await read_texts(store, AGENT) == {
        **{path.text: "mine" for path in paths[2:]},
        paths[0].text: "second",
    }
    assert sum("FROM entry" in sql or "JOIN entry" in sql for sql in queries) == 1
    assert await integrity_problems(store) == []
