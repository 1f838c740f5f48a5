"""Concurrent commits in PostgreSQL, within one process and across processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import asyncpg
import pytest

from carrel.adapters.postgres import PostgresStore, open_store
from carrel.adapters.postgres.advisory_locks import content_lock_name, lock_number
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.commit import Applied, Commit, Expect, ExpectationFailed, Outcome, Write
from carrel.core.store.entry import Entry
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
PATH = Path("SOUL.md")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[list[PostgresStore]]:
    """Three stores over one database, as three processes would have."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_store(postgres_url)) for _ in range(3)]


@pytest.fixture
async def store(stores: list[PostgresStore]) -> PostgresStore:
    return stores[0]


def agent(name: str) -> Scope:
    return Scope("acme", ScopeKind.AGENT, name)


async def commit(
    store: PostgresStore,
    text: str,
    scopes: Sequence[Scope] = (agent("marco"),),
    path: Path = PATH,
    expects: Sequence[Expect] = (),
    reason: str = "to see",
) -> Outcome:
    [blob] = await store.blobs.put([text.encode()])
    writes = tuple(Write(scope, path, Entry(blob)) for scope in scopes)
    [outcome] = await store.trees.commit([Commit(writes, "ada", reason, NOW, tuple(expects))])
    return outcome


async def deadlocks(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(
            await connection.fetchval(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            )
        )
    finally:
        await connection.close()


async def test_commits_that_arrive_during_a_transaction_share_the_next_one(
    store: PostgresStore,
) -> None:
    outcomes = await asyncio.gather(
        *[commit(store, f"text {n}", path=Path(f"{n}.md")) for n in range(64)]
    )

    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert store.counts.commits == 64
    assert store.counts.transactions <= 8
    assert store.waiting_count == 0


async def test_failing_commit_does_not_stop_the_others_of_its_batch(
    store: PostgresStore,
) -> None:
    good = [commit(store, f"text {n}", path=Path(f"{n}.md")) for n in range(4)]

    *outcomes, refused = await asyncio.gather(
        *good, commit(store, "bad", reason="a\0b"), return_exceptions=True
    )

    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert isinstance(refused, ValidationError)
    assert await store.trees.revisions([agent("marco")]) == (4,)


async def test_crossing_commits_of_many_processes_do_not_deadlock(
    stores: list[PostgresStore], postgres_url: str
) -> None:
    scopes = [agent(f"{n}") for n in range(6)]

    async def crossing(n: int) -> Outcome:
        turned = scopes[n % 6 :] + scopes[: n % 6]
        return await commit(stores[n % 3], f"{n}", turned[::-1] if n % 2 else turned)

    for _ in range(4):
        outcomes = await asyncio.gather(*[crossing(n) for n in range(30)])
        assert all(isinstance(outcome, Applied) for outcome in outcomes)

    assert await stores[0].trees.revisions(scopes) == (120,) * 6
    assert await deadlocks(postgres_url) == 0


async def test_one_of_many_concurrent_commits_with_the_same_expectation_wins(
    stores: list[PostgresStore],
) -> None:
    for turn in range(5):
        expect = Expect(agent("marco"), PATH, turn)
        outcomes = await asyncio.gather(
            *[commit(stores[n % 3], f"{n}", expects=[expect]) for n in range(24)]
        )
        assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1


async def test_processes_that_create_the_same_scope_all_write_to_it(
    stores: list[PostgresStore],
) -> None:
    outcomes = await asyncio.gather(
        *[commit(stores[n % 3], f"{n}", [agent("new")], Path(f"{n}.md")) for n in range(12)]
    )

    heads = [outcome.heads[0] for outcome in outcomes if isinstance(outcome, Applied)]
    assert sorted(head.revision for head in heads) == list(range(1, 13))


async def test_expectation_holds_until_its_commit_is_applied(
    stores: list[PostgresStore],
) -> None:
    """Each commit writes its own scope if the other scope is empty, so only one can succeed."""
    for turn in range(20):
        first, second = agent(f"one {turn}"), agent(f"two {turn}")
        outcomes = await asyncio.gather(
            commit(stores[0], "x", [first], expects=[Expect(second, PATH, 0)]),
            commit(stores[1], "x", [second], expects=[Expect(first, PATH, 0)]),
        )
        assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1


async def test_unique_key_requested_by_many_processes_is_given_to_one(
    stores: list[PostgresStore],
) -> None:
    async def claim(n: int, handle: str) -> Outcome:
        change = RecordChange(
            f"tenant {n}", RecordType.KEY, handle, {"n": n}, unique_keys=(handle,)
        )
        commit_request = Commit((), "ada", "", NOW, changes=(change,))
        [outcome] = await stores[n].trees.commit([commit_request])
        return outcome

    for turn in range(20):
        handle = f"key:{turn}"
        outcomes = await asyncio.gather(*[claim(n, handle) for n in range(3)])
        lost = [outcome for outcome in outcomes if isinstance(outcome, ExpectationFailed)]
        assert [outcome.unique_key for outcome in lost] == [handle, handle]


async def test_commit_over_many_scopes_is_applied_beside_others(
    stores: list[PostgresStore], postgres_url: str
) -> None:
    scopes = [agent(f"{n}") for n in range(1500)]

    outcomes = await asyncio.gather(
        *[commit(store, "all", scopes, Path(f"{n}.md")) for n, store in enumerate(stores)],
        *[commit(stores[n % 3], f"{n}", [scopes[n]]) for n in range(60)],
    )

    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert await stores[0].trees.revisions(scopes) == (4,) * 60 + (3,) * 1440
    assert await deadlocks(postgres_url) == 0


async def test_store_reconnects_after_its_connections_are_cut(
    store: PostgresStore, postgres_url: str
) -> None:
    await commit(store, "before")
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()

    async with asyncio.timeout(30):
        while True:
            try:
                outcome = await commit(store, "after")
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                continue
            break

    assert isinstance(outcome, Applied)


async def test_closing_a_store_completes_its_pending_commits(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        tasks = [asyncio.create_task(commit(store, f"{n}")) for n in range(16)]
        await asyncio.sleep(0)

    assert all(isinstance(outcome, Applied) for outcome in await asyncio.gather(*tasks))
    with pytest.raises(RuntimeError, match="closed"):
        await commit(store, "late")


async def test_content_of_a_pending_commit_is_not_collected(
    store: PostgresStore, postgres_url: str
) -> None:
    outcome = await commit(store, "old")
    assert isinstance(outcome, Applied)
    entry = outcome.heads[0].entry
    assert entry
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("DELETE FROM version")

    async with connection.transaction():
        shared = lock_number(content_lock_name(entry.blob.storage_ref))
        await connection.execute("SELECT acquire_locks(ARRAY[$1::bigint], '{f}')", shared)
        assert (await store.maintenance.collect(NOW + 1, 0, 0))["contents"] == 0
    assert (await store.maintenance.collect(NOW + 1, 0, 0))["contents"] == 1
    await connection.close()


async def test_equal_bytes_in_one_commit_are_stored_once(
    store: PostgresStore, postgres_url: str
) -> None:
    await commit(store, "shared", [agent(f"{n}") for n in range(20)])

    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT count(*) FROM content") == 1
    await connection.close()
