"""Contract of SessionStore: any id, items and runs of entries, and their removal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.test_sessions import (
    KATE,
    MARCO,
    append_texts,
    entry,
    id_of,
    search,
    session,
    session_append,
    start_session,
    with_store,
)
from tests.support.commits import ACME, NOW
from tests.support.contract_stores import Ports

from carrel.core.search.bm25 import TermWeight
from carrel.core.sessions.session import (
    MAX_READ_BYTES,
    EntryRemoval,
    LastEntryChanged,
    Session,
)
from carrel.core.store.idempotency import Claimed, Committed, IdempotencyKey

pytestmark = pytest.mark.anyio


async def test_agents_have_sessions_of_the_same_id(ports: Ports) -> None:
    await ports.sessions.start([session(), session(agent=KATE)])
    await append_texts(ports, "to marco")
    await ports.sessions.append([session_append(entry("to kate"), agent=KATE)])

    for agent, text in ((MARCO, "to marco"), (KATE, "to kate")):
        [stored] = await ports.sessions.read(ACME, agent, id_of(1))
        assert (stored.sequence, stored.content) == (1, text)
    assert await search(ports, "kate") == []
    [own] = await ports.sessions.get(ACME, MARCO, [id_of(1)])
    assert own and await ports.sessions.delete([own]) == 1
    assert await search(ports, "kate", KATE) == ["to kate"]


@pytest.mark.parametrize("id", ["user/42", "..", "Ada ☕", "a'b\"c\\", "%00", "x" * 255])
async def test_any_text_is_an_id(ports: Ports, id: str) -> None:
    assert await ports.sessions.start([session(id=id)]) == (session(id=id),)
    await ports.sessions.append([session_append(entry("hello"), session=id)])
    assert await ports.sessions.list(ACME, MARCO) == (session(id=id, entry_count=1),)
    assert [item.content for item in await ports.sessions.read(ACME, MARCO, id)] == ["hello"]
    hits = await ports.sessions.search(ACME, MARCO, [TermWeight("hello", 2, 1)])
    assert [hit.session for hit in hits] == [id]


async def test_an_entry_keeps_its_item_and_its_run(ports: Ports) -> None:
    await start_session(ports, run="run_2")
    tool_call = entry("call", item='{"type":"function_call","n":1.5,"t":"\\u0000"}', run="run_1")
    await ports.sessions.append([session_append(tool_call, entry("plain"))])

    rows = await ports.sessions.read(ACME, MARCO, id_of(1))
    assert rows[0] == replace(tool_call, sequence=1)
    assert (rows[1].item, rows[1].run) == (None, "run_2")
    await ports.sessions.set_run([session(run="run_3")])
    [updated] = await ports.sessions.append([session_append(entry("later"))])
    assert isinstance(updated, Session)
    assert updated.run == "run_3"
    hits = await ports.sessions.read_of_run(ACME, MARCO, "run_3")
    assert [(hit.session, hit.entry.content) for hit in hits] == [(id_of(1), "later")]
    assert await ports.sessions.read_of_run(ACME, KATE, "run_3") == ()


async def test_the_entries_of_a_run_are_read_in_pages_over_its_sessions(ports: Ports) -> None:
    for n in (1, 2):
        await start_session(ports, n, run="run_1")
        await append_texts(ports, "a", "b", n=n)

    first = await ports.sessions.read_of_run(ACME, MARCO, "run_1", limit=3)
    assert [(hit.session, hit.entry.sequence) for hit in first] == [
        *((id_of(1), 1), (id_of(1), 2), (id_of(2), 1))
    ]
    after = (first[-1].entry.at, first[-1].session, first[-1].entry.sequence)
    rest = await ports.sessions.read_of_run(ACME, MARCO, "run_1", after=after)
    assert [(hit.session, hit.entry.sequence) for hit in rest] == [(id_of(2), 2)]


async def test_the_latest_entries_are_read_backwards(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, *[f"{n}" for n in range(1, 8)])

    async def numbers(**options: Any) -> list[int]:
        rows = await ports.sessions.read_latest(ACME, MARCO, id_of(1), **options)
        return [item.sequence for item in rows]

    assert await numbers(limit=3) == [7, 6, 5]
    assert await numbers(before=5, limit=2) == [4, 3]
    assert await numbers(before=1) == []
    large = "x" * (MAX_READ_BYTES // 2 + 1)
    await append_texts(ports, large, large, large)
    assert await numbers() == [10, 9]


def removal(n: int = 1, **changed: Any) -> EntryRemoval:
    fields = {"tenant": ACME, "agent": MARCO, "session": id_of(n), "at": NOW + 50}
    return EntryRemoval(**{**fields, **changed})


async def test_the_last_entry_is_removed_and_its_number_not_used_again(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, "keep", "forget")

    [removed] = await ports.sessions.remove([removal()])

    after = session(entry_count=1, last_sequence=2, last_entry_at=NOW + 50)
    assert removed and removed.session == after
    assert removed.last == entry("forget", sequence=2)
    assert await search(ports, "forget") == []
    await append_texts(ports, "anew")
    rows = await ports.sessions.read(ACME, MARCO, id_of(1))
    assert [(item.sequence, item.content) for item in rows] == [(1, "keep"), (3, "anew")]
    assert await ports.sessions.remove([removal(), removal(), removal()])
    [empty] = await ports.sessions.remove([removal(at=NOW + 90)])
    assert empty and empty.last is None
    assert empty.session == session(last_sequence=3, last_entry_at=NOW + 50)


async def test_all_entries_are_removed(ports: Ports) -> None:
    await start_session(ports)
    await start_session(ports, 2)
    await append_texts(ports, "forget", "forget too")
    await append_texts(ports, "forget nothing", n=2)

    [removed] = await ports.sessions.remove([removal(is_complete=True)])

    assert removed and removed.session.entry_count == 0
    assert removed.last and removed.last.sequence == 2
    assert await ports.sessions.read(ACME, MARCO, id_of(1)) == ()
    assert await search(ports, "forget") == ["forget nothing"]
    assert (await append_texts(ports, "anew")).last_sequence == 3
    assert await ports.sessions.delete([removed.session]) == 0


async def test_nothing_is_removed_from_closed_and_foreign_sessions(ports: Ports) -> None:
    await ports.sessions.start([session(1), session(2, agent=KATE)])
    await append_texts(ports, "stays")
    await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW + 1)

    removals = [removal(1, is_complete=True), removal(2), removal(3)]
    assert await ports.sessions.remove(removals) == (None, None, None)
    assert len(await ports.sessions.read(ACME, MARCO, id_of(1))) == 1


async def test_a_removal_records_its_number_with_its_idempotency_key(ports: Ports) -> None:
    key = IdempotencyKey(ACME, "POST pop", "k")
    await start_session(ports)
    await append_texts(ports, "a", "b")
    assert await ports.idempotency.claim(key, "f", NOW, 0) == Claimed()

    await ports.sessions.remove([removal(idempotency_key=key)])

    assert await ports.idempotency.claim(key, "f", NOW, NOW + 1) == Committed((2,))


async def test_16_removals_remove_16_different_entries(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, *[f"{n}" for n in range(20)])

    removed = await asyncio.gather(*[ports.sessions.remove([removal()]) for _ in range(16)])

    numbers = [item.last.sequence for [item] in removed if item and item.last]
    assert sorted(numbers) == list(range(5, 21))


async def test_entries_are_appended_only_after_the_expected_one(ports: Ports) -> None:
    await start_session(ports)
    first, early, second = await ports.sessions.append(
        [session_append(entry(text), after=after) for text, after in (("a", 0), ("b", 0), ("c", 1))]
    )
    assert first == session(entry_count=1)
    assert early == LastEntryChanged(1)
    assert second == session(entry_count=2)
    assert [e.content for e in await ports.sessions.read(ACME, MARCO, id_of(1))] == ["a", "c"]
    assert await search(ports, "b") == []

    await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW)
    appends = [session_append(entry("d"), after=n, n=m) for m, n in ((1, 2), (1, 1), (9, 0))]
    assert await ports.sessions.append(appends) == (None, None, None)


async def test_a_removed_entry_is_not_the_last_one(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, "a", "b")
    await ports.sessions.remove([EntryRemoval(ACME, MARCO, id_of(1), NOW)])
    [refused] = await ports.sessions.append([session_append(entry("c"), after=2)])
    assert refused == LastEntryChanged(1)
    [updated] = await ports.sessions.append([session_append(entry("c"), after=1)])
    assert isinstance(updated, Session)
    assert updated.last_sequence == 3
    await ports.sessions.remove([EntryRemoval(ACME, MARCO, id_of(1), NOW, is_complete=True)])
    [refused, updated] = await ports.sessions.append(
        [session_append(entry("d"), after=3), session_append(entry("d"), after=0)]
    )
    assert refused == LastEntryChanged(0)
    assert isinstance(updated, Session)
    assert (updated.last_sequence, updated.entry_count) == (4, 1)


async def test_a_refused_append_marks_no_idempotency_key(ports: Ports) -> None:
    await start_session(ports)
    key = IdempotencyKey(ACME, "POST entries", "k")
    assert await ports.idempotency.claim(key, "f", NOW, 0) == Claimed()
    await ports.sessions.append([session_append(entry("x"), idempotency_key=key, after=5)])
    assert not isinstance(await ports.idempotency.claim(key, "f", NOW, NOW + 1), Committed)


async def test_of_16_writers_after_the_same_entry_one_wins(ports: Ports) -> None:
    await start_session(ports)

    async def write(store: Ports, n: int) -> int:
        """Append five entries, each after the last one that is known; count the refusals."""
        after = refusals = 0
        for turn in range(5):
            addition = session_append(entry(f"{n}/{turn}", sender=str(after)), after=after)
            [updated] = await store.sessions.append([addition])
            while isinstance(updated, LastEntryChanged):
                refusals, after = refusals + 1, updated.last
                addition = session_append(entry(f"{n}/{turn}", sender=str(after)), after=after)
                [updated] = await store.sessions.append([addition])
            assert updated
            after = updated.last_sequence
        return refusals

    async with ports.twin() as twin:
        stores = (ports, with_store(ports, twin))
        refusals = await asyncio.gather(*[write(stores[n % 2], n) for n in range(16)])

    entries = await ports.sessions.read(ACME, MARCO, id_of(1), limit=1000)
    assert [item.sequence for item in entries] == list(range(1, 81))
    assert [item.sender for item in entries] == [str(n) for n in range(80)]
    assert sum(refusals) >= 15
