"""Contract of SessionStore: start once, number without gaps, lose nothing, search."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, GLOBEX, NOW
from tests.support.contract_stores import Ports

from carrel.core.runs import Audience
from carrel.core.search.bm25 import TermCount, TermStatistics, TermWeight, select_terms
from carrel.core.search.full_text import parse_query
from carrel.core.sessions.session import (
    MAX_READ_BYTES,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
)
from carrel.core.store.idempotency import Claimed, Committed, IdempotencyKey

pytestmark = pytest.mark.anyio

MARCO, KATE = "agt_marco", "agt_kate"


def id_of(n: int) -> str:
    return f"5f0c8a52-2f5e-4d3c-9f10-{n:012}"


def session(n: int = 1, **changed: Any) -> Session:
    fields: dict[str, Any] = {
        "agent": MARCO,
        "mode": Audience.MAIN,
        "plugin": "web",
        "started_at": NOW,
        "last_entry_at": NOW,
    }
    fields["last_sequence"] = changed.get("entry_count", 0)
    return Session(**{"tenant": ACME, "id": id_of(n), **fields, **changed})


def entry(text: str, **changed: Any) -> TranscriptEntry:
    return TranscriptEntry(
        **{"sequence": 0, "at": NOW, "role": SpeakerRole.USER, "content": text, **changed}
    )


def session_append(*entries: TranscriptEntry, n: int = 1, **changed: Any) -> SessionAppend:
    fields = {"tenant": ACME, "session": id_of(n), "agent": MARCO, "entries": entries}
    return SessionAppend(**{**fields, **changed})


async def start_session(ports: Ports, n: int = 1, **changed: Any) -> Session:
    [started] = await ports.sessions.start([session(n, **changed)])
    return started


async def append_texts(ports: Ports, *texts: str, n: int = 1, at: int = NOW) -> Session:
    """Append texts to an existing session."""
    [updated] = await ports.sessions.append(
        [session_append(*[entry(text, at=at) for text in texts], n=n)]
    )
    assert isinstance(updated, Session)
    return updated


async def search(ports: Ports, query: str, agent: str = MARCO, **changed: Any) -> list[str]:
    parsed = parse_query(query)
    statistics = await ports.sessions.count_terms(ACME, agent, parsed.terms)
    hits = await ports.sessions.search(ACME, agent, select_terms(parsed, statistics), **changed)
    return [hit.entry.content for hit in hits]


async def test_a_new_store_is_empty(ports: Ports) -> None:
    assert await ports.sessions.get(ACME, MARCO, [id_of(1), "x\0"]) == (None, None)
    assert await ports.sessions.list(ACME, MARCO) == ()
    assert await ports.sessions.read(ACME, MARCO, id_of(1)) == ()
    assert await ports.sessions.list_updated(0) == ()
    assert await ports.sessions.append([session_append(entry("x"))]) == (None,)
    assert await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW) == (None,)


async def test_a_session_starts_once_and_is_returned_as_it_is_afterwards(ports: Ports) -> None:
    assert await ports.sessions.start([session(), session(2)]) == (session(), session(2))
    await append_texts(ports, "hello")

    again = await start_session(
        ports, mode=Audience.SHARED, started_at=NOW + 5, last_entry_at=NOW + 5, run="run_1"
    )

    assert again == session(entry_count=1)
    assert await ports.sessions.get(ACME, MARCO, [id_of(2), id_of(1)]) == (session(2), again)


async def test_entries_are_numbered_and_stored_completely(ports: Ports) -> None:
    await start_session(ports)
    first = entry("hello\0 \u2028 ✓", message="m-1", plugin="telegram", sender="ada")
    second = entry("", role=SpeakerRole.ASSISTANT, at=NOW + 7)

    [updated] = await ports.sessions.append([session_append(first, second)])
    await append_texts(ports, "third")

    assert updated == session(entry_count=2, last_entry_at=NOW + 7)
    entries = await ports.sessions.read(ACME, MARCO, id_of(1))
    assert entries[:2] == (replace(first, sequence=1), replace(second, sequence=2))
    assert [item.sequence for item in entries] == [1, 2, 3]
    [current] = await ports.sessions.get(ACME, MARCO, [id_of(1)])
    assert current == session(entry_count=3, last_entry_at=NOW + 7)


async def test_appends_to_closed_or_foreign_sessions_are_skipped(
    ports: Ports,
) -> None:
    await ports.sessions.start([session(1), session(2, agent=KATE), session(3), session(4)])
    await ports.sessions.close(ACME, MARCO, [id_of(3)], NOW + 1)
    appends = [session_append(entry(f"to {n}"), n=n) for n in (4, 3, 2, 1, 9)]

    updated = await ports.sessions.append(appends)

    ids = [item.id if isinstance(item, Session) else item for item in updated]
    assert ids == [id_of(4), None, None, id_of(1), None]
    for n, count in ((1, 1), (2, 0), (3, 0), (4, 1)):
        assert len(await ports.sessions.read(ACME, MARCO, id_of(n))) == count


async def test_16_writers_on_a_new_session_start_it_once_and_lose_nothing(ports: Ports) -> None:
    async def write(n: int) -> None:
        await start_session(ports, started_at=NOW + n, last_entry_at=NOW + n)
        for turn in range(5):
            await append_texts(ports, f"writer {n} says {turn}", f"writer {n} adds {turn}")

    async with ports.twin() as twin:
        rival = with_store(ports, twin)
        await asyncio.gather(
            *[write(n) for n in range(8)], *[write_as(rival, n) for n in range(8, 16)]
        )

    [current] = await ports.sessions.get(ACME, MARCO, [id_of(1)])
    assert current and current.entry_count == 160
    entries = await ports.sessions.read(ACME, MARCO, id_of(1), limit=1000)
    assert [item.sequence for item in entries] == list(range(1, 161))
    for n in range(16):
        own = [item.content for item in entries if item.content.startswith(f"writer {n} ")]
        assert own == [f"writer {n} {verb} {t}" for t in range(5) for verb in ("says", "adds")]
    assert len(await ports.sessions.list_updated(0)) == 1


def with_store(ports: Ports, twin: Any) -> Ports:
    return dataclasses.replace(ports, store=twin)


async def write_as(ports: Ports, n: int) -> None:
    await start_session(ports, started_at=NOW + n, last_entry_at=NOW + n)
    for turn in range(5):
        await append_texts(ports, f"writer {n} says {turn}", f"writer {n} adds {turn}")


async def test_a_closed_session_does_not_change(ports: Ports) -> None:
    await start_session(ports)
    [closed] = await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW + 5)
    assert closed == session(ended_at=NOW + 5)

    assert await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW + 9) == (closed,)
    assert await ports.sessions.close(ACME, KATE, [id_of(1)], NOW + 9) == (None,)
    assert await start_session(ports) == closed


async def test_sessions_belong_to_their_tenant(ports: Ports) -> None:
    await ports.sessions.start([session(), session(tenant=GLOBEX)])
    await append_texts(ports, "ours alone")

    assert await ports.sessions.get(GLOBEX, MARCO, [id_of(1)]) == (session(tenant=GLOBEX),)
    assert await ports.sessions.read(GLOBEX, MARCO, id_of(1)) == ()
    assert await ports.sessions.list(GLOBEX, MARCO) == (session(tenant=GLOBEX),)
    assert await ports.sessions.search(GLOBEX, MARCO, [TermWeight("ours", 2, 1)]) == ()
    assert await ports.sessions.close(GLOBEX, MARCO, [id_of(2)], NOW) == (None,)


async def test_sessions_are_counted_by_agent_within_their_tenant(ports: Ports) -> None:
    await start_session(ports, 1)
    await start_session(ports, 2)
    await start_session(ports, 3, agent=KATE)
    await start_session(ports, 4, tenant=GLOBEX)
    assert await ports.sessions.count(ACME, [KATE, "x", MARCO]) == (1, 0, 2)
    assert await ports.sessions.count(ACME, []) == ()
    await start_session(ports, 5, mode=Audience.SHARED)
    assert await ports.sessions.count(ACME, [MARCO], mode=Audience.SHARED) == (1,)
    assert await ports.sessions.count(ACME, [MARCO], mode=Audience.MAIN) == (2,)


async def test_sessions_are_listed_by_their_last_entry(ports: Ports) -> None:
    modes = (Audience.MAIN, Audience.SHARED)
    for n in range(6):
        await start_session(ports, n, mode=modes[n % 2], started_at=NOW + n, last_entry_at=NOW + n)
    await start_session(ports, 9, agent=KATE)
    await append_texts(ports, "late", n=2, at=NOW + 100)

    async def list_numbers(**changed: Any) -> list[int]:
        return [int(item.id[-2:]) for item in await ports.sessions.list(ACME, MARCO, **changed)]

    assert await list_numbers() == [2, 5, 4, 3, 1, 0]
    assert await list_numbers(limit=2) == [2, 5]
    assert await list_numbers(before=(NOW + 5, id_of(5)), limit=2) == [4, 3]
    assert await list_numbers(mode=Audience.SHARED) == [5, 3, 1]
    assert await list_numbers(mode=Audience.MAIN, before=(NOW + 4, id_of(4))) == [0]


async def test_reading_is_limited_in_number_and_in_bytes(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, *[f"{n}" for n in range(10)])

    page = await ports.sessions.read(ACME, MARCO, id_of(1), after=3, limit=4)
    assert [item.sequence for item in page] == [4, 5, 6, 7]

    large = "x" * (MAX_READ_BYTES // 2 + 1)
    await append_texts(ports, large, large, large)
    assert [
        item.sequence for item in await ports.sessions.read(ACME, MARCO, id_of(1), after=10)
    ] == [
        11,
        12,
    ]
    assert len(await ports.sessions.read(ACME, MARCO, id_of(1), after=12)) == 1
    assert len(await ports.sessions.search(ACME, MARCO, [TermWeight("x", 2, 1)])) == 2


async def test_entries_are_matched_by_prefixes_of_their_words(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(
        ports, "Der Código ist fertig", "codes of conduct", "nothing here", "東京に行く"
    )

    assert await search(ports, "codi") == ["Der Código ist fertig"]
    assert await search(ports, "COD") == ["codes of conduct", "Der Código ist fertig"]
    assert await search(ports, "cod fertig") == ["Der Código ist fertig", "codes of conduct"]
    assert await search(ports, "conduct fertig") == ["codes of conduct", "Der Código ist fertig"]
    assert await search(ports, "京") == ["東京に行く"]
    assert await search(ports, "cod", limit=1) == ["codes of conduct"]
    assert await search(ports, "") == []


async def test_entries_are_counted_by_term_and_weighed(ports: Ports) -> None:
    await start_session(ports)
    await start_session(ports, 3, agent=KATE)
    await append_texts(ports, "portland tea", "port of tea", "tea", "tea")
    await ports.sessions.append([session_append(entry("port"), n=3, agent=KATE)])

    counted = await ports.sessions.count_terms(ACME, MARCO, ["port", "tea", "milk"])

    counts = {"port": TermCount(1, 2), "tea": TermCount(4, 4), "milk": TermCount(0, 0)}
    assert counted == TermStatistics(4, counts)
    assert await ports.sessions.count_terms(ACME, "none", []) == TermStatistics(0, {})
    weights = [TermWeight("port", 9, 2), TermWeight("tea", 3, 0)]
    hits = await ports.sessions.search(ACME, MARCO, weights, limit=3)
    assert [hit.entry.content for hit in hits] == ["port of tea", "portland tea", "tea"]


async def test_a_search_is_confined_to_its_agent_and_audience(ports: Ports) -> None:
    await start_session(ports, 1)
    await start_session(ports, 2, mode=Audience.SHARED)
    await start_session(ports, 3, agent=KATE)
    await append_texts(ports, "secret plan", n=1)
    await append_texts(ports, "open plan", n=2, at=NOW + 1)
    await ports.sessions.append([session_append(entry("her plan"), n=3, agent=KATE)])

    assert await search(ports, "plan") == ["open plan", "secret plan"]
    assert await search(ports, "plan", mode=Audience.SHARED) == ["open plan"]
    assert await search(ports, "plan", KATE) == ["her plan"]
    hits = await ports.sessions.search(ACME, KATE, [TermWeight("plan", 2, 1)])
    assert [(hit.session, hit.entry.sequence) for hit in hits] == [(id_of(3), 1)]


@pytest.mark.parametrize(
    "hostile", ["'", '"', "\\", "a:*", "a & b", "NEAR(a b)", "-x", "@acme", "\0"]
)
async def test_no_entry_or_query_can_break_the_index(ports: Ports, hostile: str) -> None:
    await start_session(ports)
    await append_texts(ports, f"before {hostile} after")

    assert await search(ports, "before after") == [f"before {hostile} after"]
    assert await search(ports, f"{hostile} before") == [f"before {hostile} after"]


async def test_an_entry_of_very_many_and_very_long_words_is_indexed(ports: Ports) -> None:
    await start_session(ports)
    long = "ß" * 5000 + " " + " ".join(f"w{n:05}" for n in range(90_000))
    await append_texts(ports, "small", long)

    assert await search(ports, "w00017") == [long]
    assert await search(ports, "ss" * 2000) == [long]


async def test_updated_sessions_of_all_tenants_are_listed_in_order(ports: Ports) -> None:
    for n in range(5):
        await start_session(ports, n, started_at=NOW + n // 2, last_entry_at=NOW + n // 2)
    await start_session(ports, 1, tenant=GLOBEX)
    await append_texts(ports, "late", n=1, at=NOW + 9)

    updated = await ports.sessions.list_updated(0)
    assert [(item.tenant, int(item.id[-2:])) for item in updated] == [
        (ACME, 0),
        (GLOBEX, 1),
        (ACME, 2),
        (ACME, 3),
        (ACME, 4),
        (ACME, 1),
    ]
    assert await ports.sessions.list_updated(NOW + 1) == updated[2:]
    assert await ports.sessions.list_updated(0, limit=2) == updated[:2]
    assert await ports.sessions.list_updated(0, after=updated[1], limit=2) == updated[2:4]


async def test_a_deleted_session_is_gone_with_all_its_entries(ports: Ports) -> None:
    await start_session(ports)
    await start_session(ports, 2)
    updated = await append_texts(ports, "forget me")
    await append_texts(ports, "forget nothing", n=2)

    assert await ports.sessions.delete([updated, session(3)]) == 1

    assert await ports.sessions.get(ACME, MARCO, [id_of(1)]) == (None,)
    assert await ports.sessions.read(ACME, MARCO, id_of(1)) == ()
    assert await search(ports, "forget") == ["forget nothing"]
    await start_session(ports)
    await append_texts(ports, "something else")
    assert await search(ports, "me") == []


async def test_a_session_with_a_newer_entry_is_not_deleted(ports: Ports) -> None:
    before = await start_session(ports)
    await append_texts(ports, "wait")

    assert await ports.sessions.delete([before]) == 0
    assert await search(ports, "wait") == ["wait"]


async def test_the_index_can_be_rebuilt(ports: Ports) -> None:
    for n in range(3):
        await start_session(ports, n)
        await append_texts(ports, *[f"text {n} {m}" for m in range(5)], n=n)
    before = await search(ports, "text")

    assert await ports.sessions.clear_index() == 15
    assert await search(ports, "text") == []
    await append_texts(ports, "text meanwhile", n=0)
    cursor, total = None, 0
    while True:
        cursor, count = await ports.sessions.index_batch(cursor, limit=4)
        total += count
        if not count:
            break

    assert (cursor, total) == (None, 16)
    assert sorted(await search(ports, "text")) == sorted([*before, "text meanwhile"])
    [current] = await ports.sessions.get(ACME, MARCO, [id_of(0)])
    assert current and await ports.sessions.delete([current]) == 1
    assert len(await search(ports, "text")) == 10


async def test_an_append_records_its_numbers_with_its_idempotency_key(ports: Ports) -> None:
    key = IdempotencyKey(ACME, "POST entries", "k")
    await start_session(ports)
    await append_texts(ports, "first")
    assert await ports.idempotency.claim(key, "f", NOW, 0) == Claimed()

    await ports.sessions.append([session_append(entry("a"), entry("b"), idempotency_key=key)])

    assert await ports.idempotency.claim(key, "f", NOW, NOW + 1) == Committed((2, 3))


async def test_entries_are_readable_after_the_store_is_reopened(ports: Ports) -> None:
    await start_session(ports)
    await append_texts(ports, "remember this")
    async with ports.twin() as twin:
        [again] = await twin.sessions.get(ACME, MARCO, [id_of(1)])
        assert again == session(entry_count=1)
        assert await search(with_store(ports, twin), "rem") == ["remember this"]
