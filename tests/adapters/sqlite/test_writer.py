"""The one writer of SQLite: what it knows without asking is right, whatever has happened."""

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
    NOW,
    STRANGER,
    TEMPLATE,
    applied,
    attempt,
    commit,
    say,
    texts,
    write,
)
from tests.support.empty_stores import Shelter, keep_only, told

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


class Spoilt(Exception):
    """What a job raises that fails."""


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
    """Of all contents and of all events."""
    contents = store.reader.db.execute("SELECT id FROM content ORDER BY id").fetchall()
    events = await store.events.read_after(None, limit=10_000)
    return [id for (id,) in contents], [int(event.cursor) for event in events]


async def amiss(store: SqliteStore) -> list[str]:
    return await told(Shelter(store, None))


async def spoil(store: SqliteStore, *commits: Commit) -> None:
    """Have these applied, then fail."""

    def work(_: sqlite3.Connection, batch: CommitBatch) -> None:
        for each in commits:
            batch.apply(each)
            batch.apply(
                Commit(
                    (),
                    "ada",
                    "look",
                    NOW,
                    collection_revisions=(CollectionRevision(ACME, RecordType.POLICY, 99),),
                )
            )
        raise Spoilt

    with pytest.raises(Spoilt):
        await store.writer.submit(work)


async def test_two_processes_that_take_turns_give_every_number_once(
    store: SqliteStore, file: File
) -> None:
    async with open_store(file) as other:
        heads = [await say((store, other)[n // 2 % 2], f"text {n}") for n in range(12)]
        new = [await say(each, "x", STRANGER) for each in (other, store)]

        assert [head.version for head in heads] == list(range(1, 13))
        assert [head.revision for head in heads] == list(range(1, 13))
        assert [head.revision for head in new] == [1, 2]
        for each in (store, other):
            assert await ids(each) == (list(range(1, 15)), list(range(1, 15)))
            assert await amiss(each) == []


async def test_two_processes_that_write_at_once_give_every_number_once(
    store: SqliteStore, file: File
) -> None:
    async with open_store(file) as other:
        rivals = [say((store, other)[n % 2], f"text {n}") for n in range(60)]
        heads = await asyncio.gather(*rivals)

        assert sorted(head.version for head in heads) == list(range(1, 61))
        assert sorted(head.revision for head in heads) == list(range(1, 61))
        assert await ids(store) == (list(range(1, 61)), list(range(1, 61)))
        assert await amiss(other) == []


async def test_a_shelf_is_what_this_or_another_process_made_of_it(
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


async def test_a_quota_counts_what_another_process_wrote(store: SqliteStore, file: File) -> None:
    await say(store, "12345")
    async with open_store(file) as other:
        await say(other, "1234567890")
        await say(other, "x", path=Path("another"))
    await say(store, "123", path=Path("third"))

    [counted] = store.reader.db.execute("SELECT files, size FROM scope").fetchall()
    assert counted == (3, 14)


async def test_of_a_group_with_one_that_fails_all_others_are_done(store: SqliteStore) -> None:
    await say(store, "before")
    failing = spoil(store, commit(await write(store, "never"), await write(store, "no", STRANGER)))
    sent = [asyncio.create_task(say(store, f"text {n}")) for n in range(9)]
    await failing
    heads = await asyncio.gather(*sent)

    assert sorted(head.version for head in heads) == list(range(2, 11))
    assert sorted(head.revision for head in heads) == list(range(2, 11))
    assert await ids(store) == (list(range(1, 11)), list(range(1, 11)))
    assert await texts(store, STRANGER) == {}
    assert await amiss(store) == []


async def test_nothing_is_known_from_a_transaction_that_failed(store: SqliteStore) -> None:
    await say(store, "before")
    spoilt = [await write(store, "never"), await write(store, "never", TEMPLATE)]
    await spoil(store, commit(*spoilt, changes=(POLICY,)))

    assert await store.trees.revisions([AGENT, TEMPLATE]) == (1, 0)
    assert await store.records.revision() == 0
    outcome = await attempt(
        store, "after", collection_revisions=(CollectionRevision(ACME, RecordType.POLICY, 0),)
    )
    [head] = applied(outcome).heads
    assert (head.version, head.revision) == (2, 2)
    first = await say(store, "first", TEMPLATE)
    assert (first.version, first.revision) == (1, 1)
    assert await texts(store, TEMPLATE) == {"SOUL.md": "first"}
    assert await ids(store) == ([1, 2, 3], [1, 2, 3])
    assert await amiss(store) == []


async def collected(store: SqliteStore) -> tuple[int, int]:
    """Leave neither a content nor an event, and say how far their ids had come."""
    await say(store, "gone")
    await say(store, None, max_versions=1)
    contents, events = await ids(store)
    mark = await store.deliveries.cursor()
    assert await store.deliveries.enqueue(mark, str(events[-1]), [])
    await store.maintenance.collect(LATER, 0, 0)
    assert await ids(store) == ([], [])
    return contents[-1], events[-1]


@pytest.mark.parametrize("where", ["the same", "another", "a later"])
async def test_an_id_is_not_given_again_once_the_newest_is_gone(
    store: SqliteStore, file: File, where: str
) -> None:
    await keep_only(Shelter(store, None), 1)
    async with open_store(file) as other:
        await say(other, "known")
        await say(other, None, max_versions=1)
        content, event = await collected(store)
        if where == "a later":
            async with open_store(file) as later:
                await say(later, "again")
        else:
            await say(store if where == "the same" else other, "again")

        assert await ids(other) == ([content + 1], [event + 1])
        assert await other.events.latest_cursor() == str(event + 1)
        assert await amiss(store) == []


async def test_the_end_of_the_log_stays_where_it_is_when_its_events_are_gone(
    store: SqliteStore, file: File
) -> None:
    _, event = await collected(store)

    assert await store.events.latest_cursor() == str(event)
    async with open_store(file) as later:
        assert await later.events.latest_cursor() == str(event)


async def test_a_process_that_dies_in_its_transaction_has_used_up_nothing(
    store: SqliteStore, file: File
) -> None:
    await say(store, "before")
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", DYING, str(file)], check=False
    )
    assert died.returncode == 9

    assert (await say(store, "after")).revision == 2
    new = Scope(ACME, AGENT.kind, "new")
    assert (await say(store, "first", new)).revision == 1
    assert await ids(store) == ([1, 2, 3], [1, 2, 3])
    assert await texts(store, AGENT) == {"SOUL.md": "after"}
    assert await amiss(store) == []


async def test_after_another_process_has_written_a_group_asks_once_for_all_that_it_is_about(
    store: SqliteStore, file: File
) -> None:
    paths = [Path(f"notes/{n}.md") for n in range(20)]
    for path in paths[:15]:
        await say(store, "first", path=path)
    async with open_store(file) as other:
        await say(other, "second", path=paths[0])
        await say(other, None, path=paths[1])
    asked: list[str] = []
    store.writer._db.set_trace_callback(asked.append)
    outcomes = await asyncio.gather(
        *(
            attempt(store, "mine", path=path, expects=(Expect(AGENT, path, int(n < 15)),))
            for n, path in enumerate(paths)
        ),
        attempt(store, "twice", path=paths[9], expects=(Expect(AGENT, paths[9], 1),)),
    )
    store.writer._db.set_trace_callback(None)
    refused = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Applied)]
    assert refused == [0, 1, 20]
    assert await texts(store, AGENT) == {
        **{path.text: "mine" for path in paths[2:]},
        paths[0].text: "second",
    }
    assert sum("FROM entry" in sql or "JOIN entry" in sql for sql in asked) == 1
    assert await amiss(store) == []
