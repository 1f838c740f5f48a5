"""What every Sessions must do: begin once, number without gaps, forget nothing, and find words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.scenes import ACME, GLOBEX, NOW
from tests.contract.worlds import World

from carrel.core.runs import Audience
from carrel.core.search.full_text import tokenize
from carrel.core.sessions import HEAVIEST, Session, SessionAppend, SpeakerRole, TranscriptEntry
from carrel.core.store.idempotency import Claimed, Committed
from carrel.core.store.tree import IdempotencyKey

pytestmark = pytest.mark.anyio

MARCO, KATE = "agt_marco", "agt_kate"


def id_of(n: int) -> str:
    return f"5f0c8a52-2f5e-4d3c-9f10-{n:012}"


def session(n: int = 1, **more: Any) -> Session:
    facts = {"agent": MARCO, "mode": Audience.MAIN, "plugin": "web", "started": NOW, "last": NOW}
    return Session(**{"tenant": ACME, "id": id_of(n), **facts, **more})


def said(text: str, **more: Any) -> TranscriptEntry:
    return TranscriptEntry(
        **{"number": 0, "at": NOW, "role": SpeakerRole.USER, "content": text, **more}
    )


def addition(*utterances: TranscriptEntry, n: int = 1, **more: Any) -> SessionAppend:
    facts = {"tenant": ACME, "session": id_of(n), "agent": MARCO, "utterances": utterances}
    return SessionAppend(**{**facts, **more})


async def begun(world: World, n: int = 1, **more: Any) -> Session:
    [found] = await world.sessions.start([session(n, **more)])
    return found


async def tell(world: World, *texts: str, n: int = 1, at: int = NOW) -> Session:
    """Say these in a session that is there."""
    [became] = await world.sessions.append([addition(*[said(text, at=at) for text in texts], n=n)])
    assert became
    return became


async def found(world: World, query: str, agent: str = MARCO, **more: Any) -> list[str]:
    hits = await world.sessions.search(ACME, agent, tokenize(query), **more)
    return [hit.utterance.content for hit in hits]


async def test_nothing_is_there_at_first(world: World) -> None:
    assert await world.sessions.get(ACME, [id_of(1), "x\0"]) == (None, None)
    assert await world.sessions.list(ACME, MARCO) == ()
    assert await world.sessions.read(ACME, id_of(1)) == ()
    assert await world.sessions.touched(0) == ()
    assert await world.sessions.append([addition(said("x"))]) == (None,)
    assert await world.sessions.close(ACME, MARCO, [id_of(1)], NOW) == (None,)


async def test_a_session_is_begun_once_and_returned_as_it_is_afterwards(world: World) -> None:
    assert await world.sessions.start([session(), session(2)]) == (session(), session(2))
    await tell(world, "hello")

    again = await begun(world, mode=Audience.SHARED, agent=KATE, started=NOW + 5, last=NOW + 5)

    assert again == session(entries=1)
    assert await world.sessions.get(ACME, [id_of(2), id_of(1)]) == (session(2), again)


async def test_what_is_said_is_numbered_on_and_whole(world: World) -> None:
    await begun(world)
    first = said("hello\0 \u2028 ✓", message="m-1", plugin="telegram", sender="ada")
    second = said("", role=SpeakerRole.ASSISTANT, at=NOW + 7)

    [became] = await world.sessions.append([addition(first, second)])
    await tell(world, "third")

    assert became == session(entries=2, last=NOW + 7)
    heard = await world.sessions.read(ACME, id_of(1))
    assert heard[:2] == (replace(first, number=1), replace(second, number=2))
    assert [one.number for one in heard] == [1, 2, 3]
    [now] = await world.sessions.get(ACME, [id_of(1)])
    assert now == session(entries=3, last=NOW + 7)


async def test_of_several_additions_those_to_closed_or_foreign_sessions_are_passed_over(
    world: World,
) -> None:
    await world.sessions.start([session(1), session(2, agent=KATE), session(3), session(4)])
    await world.sessions.close(ACME, MARCO, [id_of(3)], NOW + 1)
    asked = [addition(said(f"to {n}"), n=n) for n in (4, 3, 2, 1, 9)]

    became = await world.sessions.append(asked)

    assert [one and one.id for one in became] == [id_of(4), None, None, id_of(1), None]
    for n, count in ((1, 1), (2, 0), (3, 0), (4, 1)):
        assert len(await world.sessions.read(ACME, id_of(n))) == count


async def test_16_writers_on_one_new_session_begin_it_once_and_lose_nothing(world: World) -> None:
    async def write(n: int) -> None:
        await begun(world, started=NOW + n, last=NOW + n)
        for turn in range(5):
            await tell(world, f"writer {n} says {turn}", f"writer {n} adds {turn}")

    async with world.twin() as twin:
        rival = replace_store(world, twin)
        await asyncio.gather(
            *[write(n) for n in range(8)], *[speak(rival, n) for n in range(8, 16)]
        )

    [now] = await world.sessions.get(ACME, [id_of(1)])
    assert now and now.entries == 160
    heard = await world.sessions.read(ACME, id_of(1), limit=1000)
    assert [one.number for one in heard] == list(range(1, 161))
    for n in range(16):
        mine = [one.content for one in heard if one.content.startswith(f"writer {n} ")]
        assert mine == [f"writer {n} {does} {t}" for t in range(5) for does in ("says", "adds")]
    assert len(await world.sessions.touched(0)) == 1


def replace_store(world: World, twin: Any) -> World:
    return World(twin, world.tamper, world.twin)


async def speak(world: World, n: int) -> None:
    await begun(world, started=NOW + n, last=NOW + n)
    for turn in range(5):
        await tell(world, f"writer {n} says {turn}", f"writer {n} adds {turn}")


async def test_a_closed_session_stays_as_it_ended(world: World) -> None:
    await begun(world)
    [closed] = await world.sessions.close(ACME, MARCO, [id_of(1)], NOW + 5)
    assert closed == session(ended=NOW + 5)

    assert await world.sessions.close(ACME, MARCO, [id_of(1)], NOW + 9) == (closed,)
    assert await world.sessions.close(ACME, KATE, [id_of(1)], NOW + 9) == (None,)
    assert await begun(world) == closed


async def test_sessions_belong_to_their_tenant(world: World) -> None:
    await world.sessions.start([session(), session(tenant=GLOBEX)])
    await tell(world, "ours alone")

    assert await world.sessions.get(GLOBEX, [id_of(1)]) == (session(tenant=GLOBEX),)
    assert await world.sessions.read(GLOBEX, id_of(1)) == ()
    assert await world.sessions.list(GLOBEX, MARCO) == (session(tenant=GLOBEX),)
    assert await world.sessions.search(GLOBEX, MARCO, ["ours"]) == ()
    assert await world.sessions.close(GLOBEX, MARCO, [id_of(2)], NOW) == (None,)


async def test_sessions_are_counted_by_agent_within_their_tenant(world: World) -> None:
    await begun(world, 1)
    await begun(world, 2)
    await begun(world, 3, agent=KATE)
    await begun(world, 4, tenant=GLOBEX)
    assert await world.sessions.count(ACME, [KATE, "x", MARCO]) == (1, 0, 2)
    assert await world.sessions.count(ACME, []) == ()


async def test_sessions_are_listed_by_when_something_was_last_said(world: World) -> None:
    modes = (Audience.MAIN, Audience.SHARED)
    for n in range(6):
        await begun(world, n, mode=modes[n % 2], started=NOW + n, last=NOW + n)
    await begun(world, 9, agent=KATE)
    await tell(world, "late", n=2, at=NOW + 100)

    async def listed(**more: Any) -> list[int]:
        return [int(one.id[-2:]) for one in await world.sessions.list(ACME, MARCO, **more)]

    assert await listed() == [2, 5, 4, 3, 1, 0]
    assert await listed(limit=2) == [2, 5]
    assert await listed(before=(NOW + 5, id_of(5)), limit=2) == [4, 3]
    assert await listed(mode=Audience.SHARED) == [5, 3, 1]
    assert await listed(mode=Audience.MAIN, before=(NOW + 4, id_of(4))) == [0]


async def test_reading_is_bounded_in_number_and_in_bytes(world: World) -> None:
    await begun(world)
    await tell(world, *[f"{n}" for n in range(10)])

    some = await world.sessions.read(ACME, id_of(1), after=3, limit=4)
    assert [one.number for one in some] == [4, 5, 6, 7]

    large = "x" * (HEAVIEST // 2 + 1)
    await tell(world, large, large, large)
    assert [one.number for one in await world.sessions.read(ACME, id_of(1), after=10)] == [11, 12]
    assert len(await world.sessions.read(ACME, id_of(1), after=12)) == 1
    assert len(await world.sessions.search(ACME, MARCO, ["x"])) == 2


async def test_what_was_said_is_found_by_the_beginnings_of_its_words(world: World) -> None:
    await begun(world)
    await tell(world, "Der Código ist fertig", "codes of conduct", "nothing here", "東京に行く")

    assert await found(world, "codi") == ["Der Código ist fertig"]
    assert await found(world, "COD") == ["codes of conduct", "Der Código ist fertig"]
    assert await found(world, "cod fertig") == ["Der Código ist fertig"]
    assert await found(world, "conduct fertig") == []
    assert await found(world, "conduct fertig", every=False) == [
        "codes of conduct",
        "Der Código ist fertig",
    ]
    assert await found(world, "京") == ["東京に行く"]
    assert await found(world, "cod", limit=1) == ["codes of conduct"]
    assert await found(world, "") == []


async def test_a_search_stays_with_its_agent_and_mode(world: World) -> None:
    await begun(world, 1)
    await begun(world, 2, mode=Audience.SHARED)
    await begun(world, 3, agent=KATE)
    await tell(world, "secret plan", n=1)
    await tell(world, "open plan", n=2, at=NOW + 1)
    await world.sessions.append([addition(said("her plan"), n=3, agent=KATE)])

    assert await found(world, "plan") == ["open plan", "secret plan"]
    assert await found(world, "plan", mode=Audience.SHARED) == ["open plan"]
    assert await found(world, "plan", KATE) == ["her plan"]
    hits = await world.sessions.search(ACME, KATE, ["plan"])
    assert [(hit.session, hit.utterance.number) for hit in hits] == [(id_of(3), 1)]


@pytest.mark.parametrize("odd", ["'", '"', "\\", "a:*", "a & b", "NEAR(a b)", "-x", "@acme", "\0"])
async def test_nothing_that_is_said_or_asked_can_break_the_index(world: World, odd: str) -> None:
    await begun(world)
    await tell(world, f"before {odd} after")

    assert await found(world, "before after") == [f"before {odd} after"]
    assert await found(world, f"{odd} before") == [f"before {odd} after"]


async def test_a_text_of_very_many_and_very_long_words_can_be_said(world: World) -> None:
    await begun(world)
    long = "ß" * 5000 + " " + " ".join(f"w{n:05}" for n in range(90_000))
    await tell(world, "small", long)

    assert await found(world, "w00017") == [long]
    assert await found(world, "ss" * 2000) == [long]


async def test_touched_sessions_are_those_of_all_tenants_in_order(world: World) -> None:
    for n in range(5):
        await begun(world, n, started=NOW + n // 2, last=NOW + n // 2)
    await begun(world, 1, tenant=GLOBEX)
    await tell(world, "late", n=1, at=NOW + 9)

    every = await world.sessions.touched(0)
    assert [(one.tenant, int(one.id[-2:])) for one in every] == [
        (ACME, 0),
        (GLOBEX, 1),
        (ACME, 2),
        (ACME, 3),
        (ACME, 4),
        (ACME, 1),
    ]
    assert await world.sessions.touched(NOW + 1) == every[2:]
    assert await world.sessions.touched(0, limit=2) == every[:2]
    assert await world.sessions.touched(0, after=every[1], limit=2) == every[2:4]


async def test_a_dropped_session_is_gone_with_all_that_was_said_in_it(world: World) -> None:
    await begun(world)
    await begun(world, 2)
    became = await tell(world, "forget me")
    await tell(world, "forget nothing", n=2)

    assert await world.sessions.drop([became, session(3)]) == 1

    assert await world.sessions.get(ACME, [id_of(1)]) == (None,)
    assert await world.sessions.read(ACME, id_of(1)) == ()
    assert await found(world, "forget") == ["forget nothing"]
    await begun(world)
    await tell(world, "something else")
    assert await found(world, "me") == []


async def test_a_session_in_which_something_was_said_since_is_not_dropped(world: World) -> None:
    was = await begun(world)
    await tell(world, "wait")

    assert await world.sessions.drop([was]) == 0
    assert await found(world, "wait") == ["wait"]


async def test_the_index_can_be_made_again(world: World) -> None:
    for n in range(3):
        await begun(world, n)
        await tell(world, *[f"text {n} {m}" for m in range(5)], n=n)
    before = await found(world, "text")

    assert await world.sessions.unindex() == 15
    assert await found(world, "text") == []
    await tell(world, "text meanwhile", n=0)
    place, total = None, 0
    while True:
        place, count = await world.sessions.index(place, limit=4)
        total += count
        if not count:
            break

    assert (place, total) == (None, 16)
    assert sorted(await found(world, "text")) == sorted([*before, "text meanwhile"])
    [gone] = await world.sessions.get(ACME, [id_of(0)])
    assert gone and await world.sessions.drop([gone]) == 1
    assert len(await found(world, "text")) == 10


async def test_an_addition_marks_its_receipt_with_its_numbers(world: World) -> None:
    key = IdempotencyKey(ACME, "POST entries", "k")
    await begun(world)
    await tell(world, "first")
    assert await world.receipts.claim(key, "f", NOW, 0) == Claimed()

    await world.sessions.append([addition(said("a"), said("b"), receipt=key)])

    assert await world.receipts.claim(key, "f", NOW, NOW + 1) == Committed((2, 3))


async def test_what_was_said_is_there_when_the_store_is_opened_again(world: World) -> None:
    await begun(world)
    await tell(world, "remember this")
    async with world.twin() as twin:
        [again] = await twin.sessions.get(ACME, [id_of(1)])
        assert again == session(entries=1)
        assert await found(replace_store(world, twin), "rem") == ["remember this"]
