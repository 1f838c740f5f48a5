"""What every Sessions must do: begin once, number without gaps, forget nothing, and find words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, GLOBEX, NOW
from tests.support.contract_stores import Ports

from carrel.core.runs import Audience
from carrel.core.search.full_text import tokenize
from carrel.core.sessions import (
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


def session(n: int = 1, **more: Any) -> Session:
    facts = {
        "agent": MARCO,
        "mode": Audience.MAIN,
        "plugin": "web",
        "started_at": NOW,
        "last_entry_at": NOW,
    }
    return Session(**{"tenant": ACME, "id": id_of(n), **facts, **more})


def said(text: str, **more: Any) -> TranscriptEntry:
    return TranscriptEntry(
        **{"sequence": 0, "at": NOW, "role": SpeakerRole.USER, "content": text, **more}
    )


def addition(*entries: TranscriptEntry, n: int = 1, **more: Any) -> SessionAppend:
    facts = {"tenant": ACME, "session": id_of(n), "agent": MARCO, "entries": entries}
    return SessionAppend(**{**facts, **more})


async def begun(ports: Ports, n: int = 1, **more: Any) -> Session:
    [found] = await ports.sessions.start([session(n, **more)])
    return found


async def tell(ports: Ports, *texts: str, n: int = 1, at: int = NOW) -> Session:
    """Say these in a session that is there."""
    [became] = await ports.sessions.append([addition(*[said(text, at=at) for text in texts], n=n)])
    assert became
    return became


async def found(ports: Ports, query: str, agent: str = MARCO, **more: Any) -> list[str]:
    hits = await ports.sessions.search(ACME, agent, tokenize(query), **more)
    return [hit.entry.content for hit in hits]


async def test_nothing_is_there_at_first(ports: Ports) -> None:
    assert await ports.sessions.get(ACME, [id_of(1), "x\0"]) == (None, None)
    assert await ports.sessions.list(ACME, MARCO) == ()
    assert await ports.sessions.read(ACME, id_of(1)) == ()
    assert await ports.sessions.list_updated(0) == ()
    assert await ports.sessions.append([addition(said("x"))]) == (None,)
    assert await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW) == (None,)


async def test_a_session_is_begun_once_and_returned_as_it_is_afterwards(ports: Ports) -> None:
    assert await ports.sessions.start([session(), session(2)]) == (session(), session(2))
    await tell(ports, "hello")

    again = await begun(
        ports, mode=Audience.SHARED, agent=KATE, started_at=NOW + 5, last_entry_at=NOW + 5
    )

    assert again == session(entry_count=1)
    assert await ports.sessions.get(ACME, [id_of(2), id_of(1)]) == (session(2), again)


async def test_what_is_said_is_numbered_on_and_whole(ports: Ports) -> None:
    await begun(ports)
    first = said("hello\0 \u2028 ✓", message="m-1", plugin="telegram", sender="ada")
    second = said("", role=SpeakerRole.ASSISTANT, at=NOW + 7)

    [became] = await ports.sessions.append([addition(first, second)])
    await tell(ports, "third")

    assert became == session(entry_count=2, last_entry_at=NOW + 7)
    heard = await ports.sessions.read(ACME, id_of(1))
    assert heard[:2] == (replace(first, sequence=1), replace(second, sequence=2))
    assert [one.sequence for one in heard] == [1, 2, 3]
    [now] = await ports.sessions.get(ACME, [id_of(1)])
    assert now == session(entry_count=3, last_entry_at=NOW + 7)


async def test_of_several_additions_those_to_closed_or_foreign_sessions_are_passed_over(
    ports: Ports,
) -> None:
    await ports.sessions.start([session(1), session(2, agent=KATE), session(3), session(4)])
    await ports.sessions.close(ACME, MARCO, [id_of(3)], NOW + 1)
    asked = [addition(said(f"to {n}"), n=n) for n in (4, 3, 2, 1, 9)]

    became = await ports.sessions.append(asked)

    assert [one and one.id for one in became] == [id_of(4), None, None, id_of(1), None]
    for n, count in ((1, 1), (2, 0), (3, 0), (4, 1)):
        assert len(await ports.sessions.read(ACME, id_of(n))) == count


async def test_16_writers_on_one_new_session_begin_it_once_and_lose_nothing(ports: Ports) -> None:
    async def write(n: int) -> None:
        await begun(ports, started_at=NOW + n, last_entry_at=NOW + n)
        for turn in range(5):
            await tell(ports, f"writer {n} says {turn}", f"writer {n} adds {turn}")

    async with ports.twin() as twin:
        rival = replace_store(ports, twin)
        await asyncio.gather(
            *[write(n) for n in range(8)], *[speak(rival, n) for n in range(8, 16)]
        )

    [now] = await ports.sessions.get(ACME, [id_of(1)])
    assert now and now.entry_count == 160
    heard = await ports.sessions.read(ACME, id_of(1), limit=1000)
    assert [one.sequence for one in heard] == list(range(1, 161))
    for n in range(16):
        mine = [one.content for one in heard if one.content.startswith(f"writer {n} ")]
        assert mine == [f"writer {n} {does} {t}" for t in range(5) for does in ("says", "adds")]
    assert len(await ports.sessions.list_updated(0)) == 1


def replace_store(ports: Ports, twin: Any) -> Ports:
    return Ports(twin, ports.tamper, ports.twin, ports.upkeep)


async def speak(ports: Ports, n: int) -> None:
    await begun(ports, started_at=NOW + n, last_entry_at=NOW + n)
    for turn in range(5):
        await tell(ports, f"writer {n} says {turn}", f"writer {n} adds {turn}")


async def test_a_closed_session_stays_as_it_ended(ports: Ports) -> None:
    await begun(ports)
    [closed] = await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW + 5)
    assert closed == session(ended_at=NOW + 5)

    assert await ports.sessions.close(ACME, MARCO, [id_of(1)], NOW + 9) == (closed,)
    assert await ports.sessions.close(ACME, KATE, [id_of(1)], NOW + 9) == (None,)
    assert await begun(ports) == closed


async def test_sessions_belong_to_their_tenant(ports: Ports) -> None:
    await ports.sessions.start([session(), session(tenant=GLOBEX)])
    await tell(ports, "ours alone")

    assert await ports.sessions.get(GLOBEX, [id_of(1)]) == (session(tenant=GLOBEX),)
    assert await ports.sessions.read(GLOBEX, id_of(1)) == ()
    assert await ports.sessions.list(GLOBEX, MARCO) == (session(tenant=GLOBEX),)
    assert await ports.sessions.search(GLOBEX, MARCO, ["ours"]) == ()
    assert await ports.sessions.close(GLOBEX, MARCO, [id_of(2)], NOW) == (None,)


async def test_sessions_are_counted_by_agent_within_their_tenant(ports: Ports) -> None:
    await begun(ports, 1)
    await begun(ports, 2)
    await begun(ports, 3, agent=KATE)
    await begun(ports, 4, tenant=GLOBEX)
    assert await ports.sessions.count(ACME, [KATE, "x", MARCO]) == (1, 0, 2)
    assert await ports.sessions.count(ACME, []) == ()


async def test_sessions_are_listed_by_when_something_was_last_said(ports: Ports) -> None:
    modes = (Audience.MAIN, Audience.SHARED)
    for n in range(6):
        await begun(ports, n, mode=modes[n % 2], started_at=NOW + n, last_entry_at=NOW + n)
    await begun(ports, 9, agent=KATE)
    await tell(ports, "late", n=2, at=NOW + 100)

    async def listed(**more: Any) -> list[int]:
        return [int(one.id[-2:]) for one in await ports.sessions.list(ACME, MARCO, **more)]

    assert await listed() == [2, 5, 4, 3, 1, 0]
    assert await listed(limit=2) == [2, 5]
    assert await listed(before=(NOW + 5, id_of(5)), limit=2) == [4, 3]
    assert await listed(mode=Audience.SHARED) == [5, 3, 1]
    assert await listed(mode=Audience.MAIN, before=(NOW + 4, id_of(4))) == [0]


async def test_reading_is_bounded_in_number_and_in_bytes(ports: Ports) -> None:
    await begun(ports)
    await tell(ports, *[f"{n}" for n in range(10)])

    some = await ports.sessions.read(ACME, id_of(1), after=3, limit=4)
    assert [one.sequence for one in some] == [4, 5, 6, 7]

    large = "x" * (MAX_READ_BYTES // 2 + 1)
    await tell(ports, large, large, large)
    assert [one.sequence for one in await ports.sessions.read(ACME, id_of(1), after=10)] == [11, 12]
    assert len(await ports.sessions.read(ACME, id_of(1), after=12)) == 1
    assert len(await ports.sessions.search(ACME, MARCO, ["x"])) == 2


async def test_what_was_said_is_found_by_the_beginnings_of_its_words(ports: Ports) -> None:
    await begun(ports)
    await tell(ports, "Der Código ist fertig", "codes of conduct", "nothing here", "東京に行く")

    assert await found(ports, "codi") == ["Der Código ist fertig"]
    assert await found(ports, "COD") == ["codes of conduct", "Der Código ist fertig"]
    assert await found(ports, "cod fertig") == ["Der Código ist fertig"]
    assert await found(ports, "conduct fertig") == []
    assert await found(ports, "conduct fertig", match_all=False) == [
        "codes of conduct",
        "Der Código ist fertig",
    ]
    assert await found(ports, "京") == ["東京に行く"]
    assert await found(ports, "cod", limit=1) == ["codes of conduct"]
    assert await found(ports, "") == []


async def test_a_search_stays_with_its_agent_and_mode(ports: Ports) -> None:
    await begun(ports, 1)
    await begun(ports, 2, mode=Audience.SHARED)
    await begun(ports, 3, agent=KATE)
    await tell(ports, "secret plan", n=1)
    await tell(ports, "open plan", n=2, at=NOW + 1)
    await ports.sessions.append([addition(said("her plan"), n=3, agent=KATE)])

    assert await found(ports, "plan") == ["open plan", "secret plan"]
    assert await found(ports, "plan", mode=Audience.SHARED) == ["open plan"]
    assert await found(ports, "plan", KATE) == ["her plan"]
    hits = await ports.sessions.search(ACME, KATE, ["plan"])
    assert [(hit.session, hit.entry.sequence) for hit in hits] == [(id_of(3), 1)]


@pytest.mark.parametrize("odd", ["'", '"', "\\", "a:*", "a & b", "NEAR(a b)", "-x", "@acme", "\0"])
async def test_nothing_that_is_said_or_asked_can_break_the_index(ports: Ports, odd: str) -> None:
    await begun(ports)
    await tell(ports, f"before {odd} after")

    assert await found(ports, "before after") == [f"before {odd} after"]
    assert await found(ports, f"{odd} before") == [f"before {odd} after"]


async def test_a_text_of_very_many_and_very_long_words_can_be_said(ports: Ports) -> None:
    await begun(ports)
    long = "ß" * 5000 + " " + " ".join(f"w{n:05}" for n in range(90_000))
    await tell(ports, "small", long)

    assert await found(ports, "w00017") == [long]
    assert await found(ports, "ss" * 2000) == [long]


async def test_touched_sessions_are_those_of_all_tenants_in_order(ports: Ports) -> None:
    for n in range(5):
        await begun(ports, n, started_at=NOW + n // 2, last_entry_at=NOW + n // 2)
    await begun(ports, 1, tenant=GLOBEX)
    await tell(ports, "late", n=1, at=NOW + 9)

    every = await ports.sessions.list_updated(0)
    assert [(one.tenant, int(one.id[-2:])) for one in every] == [
        (ACME, 0),
        (GLOBEX, 1),
        (ACME, 2),
        (ACME, 3),
        (ACME, 4),
        (ACME, 1),
    ]
    assert await ports.sessions.list_updated(NOW + 1) == every[2:]
    assert await ports.sessions.list_updated(0, limit=2) == every[:2]
    assert await ports.sessions.list_updated(0, after=every[1], limit=2) == every[2:4]


async def test_a_dropped_session_is_gone_with_all_that_was_said_in_it(ports: Ports) -> None:
    await begun(ports)
    await begun(ports, 2)
    became = await tell(ports, "forget me")
    await tell(ports, "forget nothing", n=2)

    assert await ports.sessions.delete([became, session(3)]) == 1

    assert await ports.sessions.get(ACME, [id_of(1)]) == (None,)
    assert await ports.sessions.read(ACME, id_of(1)) == ()
    assert await found(ports, "forget") == ["forget nothing"]
    await begun(ports)
    await tell(ports, "something else")
    assert await found(ports, "me") == []


async def test_a_session_in_which_something_was_said_since_is_not_dropped(ports: Ports) -> None:
    was = await begun(ports)
    await tell(ports, "wait")

    assert await ports.sessions.delete([was]) == 0
    assert await found(ports, "wait") == ["wait"]


async def test_the_index_can_be_made_again(ports: Ports) -> None:
    for n in range(3):
        await begun(ports, n)
        await tell(ports, *[f"text {n} {m}" for m in range(5)], n=n)
    before = await found(ports, "text")

    assert await ports.sessions.clear_index() == 15
    assert await found(ports, "text") == []
    await tell(ports, "text meanwhile", n=0)
    place, total = None, 0
    while True:
        place, count = await ports.sessions.index_batch(place, limit=4)
        total += count
        if not count:
            break

    assert (place, total) == (None, 16)
    assert sorted(await found(ports, "text")) == sorted([*before, "text meanwhile"])
    [gone] = await ports.sessions.get(ACME, [id_of(0)])
    assert gone and await ports.sessions.delete([gone]) == 1
    assert len(await found(ports, "text")) == 10


async def test_an_addition_marks_its_receipt_with_its_numbers(ports: Ports) -> None:
    key = IdempotencyKey(ACME, "POST entries", "k")
    await begun(ports)
    await tell(ports, "first")
    assert await ports.idempotency.claim(key, "f", NOW, 0) == Claimed()

    await ports.sessions.append([addition(said("a"), said("b"), idempotency_key=key)])

    assert await ports.idempotency.claim(key, "f", NOW, NOW + 1) == Committed((2, 3))


async def test_what_was_said_is_there_when_the_store_is_opened_again(ports: Ports) -> None:
    await begun(ports)
    await tell(ports, "remember this")
    async with ports.twin() as twin:
        [again] = await twin.sessions.get(ACME, [id_of(1)])
        assert again == session(entry_count=1)
        assert await found(replace_store(ports, twin), "rem") == ["remember this"]
