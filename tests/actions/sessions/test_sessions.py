"""Sessions: whose they are, what is kept of what is said in them, and how it is found again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant, race

from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import MAX_ENTRIES_PER_APPEND, NewEntry
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions import MAX_CONTENT_BYTES, SpeakerRole, parse_transcript
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
VALUE = "hunter2-hunter2"


@pytest.fixture
async def owner(anywhere: Ports) -> Actor:
    _, owner = await create_tenant(anywhere)
    for slug in ("kate", "marco"):
        await agents.create(anywhere, owner, NewAgent(slug, slug.title()))
    return owner


async def tell(ports: Ports, owner: Actor, *texts: str, agent: str = "kate", id: str = ID) -> None:
    await sessions.append(ports, owner, agent, id, [NewEntry("user", text) for text in texts])


async def test_a_session_is_started_with_an_id_of_ones_own_or_a_new_one(
    anywhere: Ports, owner: Actor
) -> None:
    own = await sessions.start(anywhere, owner, "kate", id=f"{{{ID.upper()}}}", plugin="web")
    fresh = [await sessions.start(anywhere, owner, "kate") for _ in range(2)]

    assert (own.id, own.plugin, own.mode) == (ID, "web", Audience.MAIN)
    assert len({own.id, *[one.id for one in fresh]}) == 3
    assert await sessions.get(anywhere, owner, "kate", ID.replace("-", "")) == own


@pytest.mark.parametrize(
    ("scope", "mode"),
    [
        (None, Audience.MAIN),
        ("main", Audience.MAIN),
        ("shared", Audience.SHARED),
        ("Main", Audience.SHARED),
    ],
)
async def test_a_scope_that_is_not_known_is_shared(
    anywhere: Ports, owner: Actor, scope: str | None, mode: Audience
) -> None:
    assert (await sessions.start(anywhere, owner, "kate", id=ID, scope=scope)).mode is mode


async def test_starting_it_again_returns_it_and_never_changes_its_scope(
    anywhere: Ports, owner: Actor
) -> None:
    first = await sessions.start(anywhere, owner, "kate", id=ID, scope="shared", plugin="web")
    advance_clock(anywhere, 1000)

    again, new = await sessions.start_or_get(
        anywhere, owner, "kate", id=ID, scope="main", plugin="x"
    )

    assert (again, new) == (first, False)
    with pytest.raises(Conflict):
        await sessions.start(anywhere, owner, "marco", id=ID)


async def test_what_is_said_comes_back_numbered_and_exported(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID, plugin="telegram")
    said = [
        NewEntry("user", "hello", "m-1", "telegram", "user123"),
        NewEntry("assistant", "hello Luis"),
    ]

    kept = await sessions.append(anywhere, owner, "kate", ID, said)

    assert [(one.sequence, one.role, one.content) for one in kept] == [
        (1, SpeakerRole.USER, "hello"),
        (2, SpeakerRole.ASSISTANT, "hello Luis"),
    ]
    now, heard = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert (heard, now.entry_count) == (kept, 2)
    lines = b"".join([some async for some in sessions.export_jsonl(anywhere, now)])
    found = parse_transcript(lines)
    assert found.header and found.header.agent == "kate"
    assert found.entries == kept


async def test_a_long_transcript_is_exported_whole(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    for _ in range(12):
        await tell(anywhere, owner, *["x"] * MAX_ENTRIES_PER_APPEND)
    session = await sessions.get(anywhere, owner, "kate", ID)
    pieces = [some async for some in sessions.export_jsonl(anywhere, session)]
    assert len(pieces) > 2
    assert len(parse_transcript(b"".join(pieces)).entries) == 1200


async def test_secrets_are_redacted_wherever_they_are_said(anywhere: Ports, owner: Actor) -> None:
    await secrets.put(anywhere, owner, "db", VALUE)
    await sessions.start(anywhere, owner, "kate", id=ID, plugin=VALUE)
    said = NewEntry("tool", f"the password is {VALUE}!", VALUE, VALUE, VALUE)

    [kept] = await sessions.append(anywhere, owner, "kate", ID, [said])

    assert kept.content == "the password is [REDACTED:db]!"
    session = await sessions.get(anywhere, owner, "kate", ID)
    everything = b"".join([some async for some in sessions.export_jsonl(anywhere, session)])
    assert b"hunter2" not in everything
    assert everything.count(b"[REDACTED:db]") == 5
    assert await sessions.search(anywhere, owner, "kate", "hunter2") == ()


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ([], ValidationError),
        ([NewEntry("user", "x")] * (MAX_ENTRIES_PER_APPEND + 1), ValidationError),
        ([NewEntry("judge", "x")], ValidationError),
        ([NewEntry("user", "\ud800")], ValidationError),
        ([NewEntry("user", "x", message="y" * 257)], ValidationError),
        ([NewEntry("user", "x", sender="a\nb")], ValidationError),
        ([NewEntry("user", "x", plugin="\udcff")], ValidationError),
        ([NewEntry("user", "é" * (MAX_CONTENT_BYTES // 2 + 1))], PayloadTooLarge),
        ([NewEntry("user", "fine"), NewEntry("judge", "x")], ValidationError),
    ],
)
async def test_what_cannot_be_kept_is_refused_as_a_whole(
    anywhere: Ports, owner: Actor, said: list[NewEntry], refusal: type[Exception]
) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    with pytest.raises(refusal):
        await sessions.append(anywhere, owner, "kate", ID, said)
    assert (await sessions.get(anywhere, owner, "kate", ID)).entry_count == 0


async def test_as_much_as_may_be_said_at_a_time_is_kept(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await tell(anywhere, owner, "x" * MAX_CONTENT_BYTES, "a \0 b", "")
    _, [_, *rest] = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert [one.content for one in rest] == ["a \0 b", ""]


async def test_nothing_more_is_said_in_a_closed_session(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await tell(anywhere, owner, "asked, and never answered")
    closed = await sessions.close(anywhere, owner, "kate", ID)
    advance_clock(anywhere, 1000)

    assert closed.ended_at is not None
    assert await sessions.close(anywhere, owner, "kate", ID) == closed
    with pytest.raises(Conflict, match="closed"):
        await tell(anywhere, owner, "too late")
    _, heard = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert [one.content for one in heard] == ["asked, and never answered"]


async def test_sessions_are_reached_only_by_way_of_their_agent(
    anywhere: Ports, owner: Actor
) -> None:
    _, stranger = await create_tenant(anywhere, "globex")
    await agents.create(anywhere, stranger, NewAgent("kate", "Kate"))
    kate = await agents.get(anywhere, owner, "kate")
    marco = await agents.get(anywhere, owner, "marco")
    await sessions.start(anywhere, owner, "kate", id=ID)
    await tell(anywhere, owner, "a private word")
    bound = replace(owner, agent=marco.id)

    attempts: list[tuple[Actor, str]] = [(owner, "marco"), (stranger, "kate"), (bound, "kate")]
    for actor, agent in [*attempts, (stranger, kate.id), (bound, "marco"), (owner, "nobody")]:
        verbs: list[Any] = [
            sessions.get,
            sessions.close,
            sessions.list_entries,
            sessions.list_recent_entries,
        ]
        for verb in verbs:
            with pytest.raises(NotFound):
                await verb(anywhere, actor, agent, ID)
        with pytest.raises(NotFound):
            await sessions.append(anywhere, actor, agent, ID, [NewEntry("user", "x")])
    for actor, agent in [(owner, "marco"), (stranger, "kate"), (bound, "marco")]:
        assert await sessions.search(anywhere, actor, agent, "private") == ()
        assert (await sessions.list_sessions(anywhere, actor, agent)).items == ()
    with pytest.raises(NotFound):
        await sessions.search(anywhere, bound, "kate", "private")
    with pytest.raises(NotFound):
        await sessions.start(anywhere, bound, "kate")
    own = await sessions.start(anywhere, replace(owner, agent=kate.id), "kate", id=ID)
    assert own.entry_count == 1
    for odd in ("", "x", "../x", "\0", f"{ID}.jsonl"):
        with pytest.raises(NotFound):
            await sessions.get(anywhere, owner, "kate", odd)
        with pytest.raises(ValidationError):
            await sessions.start(anywhere, owner, "kate", id=odd)


async def test_sessions_are_listed_in_pages_by_their_last_word(
    anywhere: Ports, owner: Actor
) -> None:
    made = []
    for n in range(5):
        scope = "shared" if n % 2 else None
        made.append((await sessions.start(anywhere, owner, "kate", scope=scope)).id)
        advance_clock(anywhere, 10)
    await tell(anywhere, owner, "x", id=made[0])

    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await sessions.list_sessions(anywhere, owner, "kate", cursor=cursor, limit=2)
        seen += [one.id for one in page.items]
        cursor = page.next
    assert seen == [made[0], *reversed(made[1:])]
    shared = await sessions.list_sessions(anywhere, owner, "kate", mode=Audience.SHARED)
    assert [one.id for one in shared.items] == [made[3], made[1]]
    for odd in ("x", "1", "-1.x", f"{'9' * 19}.{ID}", f"1.{ID}x"):
        with pytest.raises(ValidationError):
            await sessions.list_sessions(anywhere, owner, "kate", cursor=odd)


async def test_the_last_words_come_in_order(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    assert (await sessions.list_recent_entries(anywhere, owner, "kate", ID))[1] == ()
    await tell(anywhere, owner, *[str(n) for n in range(30)])

    _, said = await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=3)
    assert [one.content for one in said] == ["27", "28", "29"]
    assert len((await sessions.list_recent_entries(anywhere, owner, "kate", ID))[1]) == 10
    assert (
        len((await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=500))[1]) == 30
    )
    assert (await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=0))[1] == ()


async def test_the_best_answer_comes_first(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    other = (await sessions.start(anywhere, owner, "kate", scope="shared")).id
    await tell(anywhere, owner, "the Café in New York opens at nine")
    advance_clock(anywhere, 5)
    await tell(anywhere, owner, "a new thing", "york is new to me", id=other)

    async def found(query: str, **more: Any) -> list[str]:
        hits = await sessions.search(anywhere, owner, "kate", query, **more)
        return [hit.entry.content for hit in hits]

    assert await found("new york") == [
        "the Café in New York opens at nine",
        "york is new to me",
        "a new thing",
    ]
    assert await found("cafe") == ["the Café in New York opens at nine"]
    assert await found("new york", limit=1) == ["the Café in New York opens at nine"]
    assert await found("new york", mode=Audience.SHARED) == ["york is new to me", "a new thing"]
    assert await found("…") == []
    assert await found(" ".join(f"w{n}" for n in range(1000))) == []


async def test_16_writers_on_one_new_session_leave_one_header_and_all_entries(
    anywhere: Ports, owner: Actor
) -> None:
    async def write(n: int) -> None:
        await sessions.start(anywhere, owner, "kate", id=ID)
        for turn in range(3):
            await tell(anywhere, owner, f"{n}: {turn}")

    _, failed = await race(*[write(n) for n in range(16)])

    assert not failed
    session = await sessions.get(anywhere, owner, "kate", ID)
    lines = b"".join([some async for some in sessions.export_jsonl(anywhere, session)])
    found = parse_transcript(lines)
    assert lines.count(b'"type":"session"') == 1
    assert lines.startswith(b'{"type":"session"')
    assert (found.skipped, [one.sequence for one in found.entries]) == (0, list(range(1, 49)))
    assert {one.content for one in found.entries} == {
        f"{n}: {turn}" for n in range(16) for turn in range(3)
    }


async def test_the_full_text_can_be_made_again(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await tell(anywhere, owner, "needle", *["hay"] * 20)
    await anywhere.sessions.clear_index()
    assert await sessions.search(anywhere, owner, "kate", "needle") == ()
    seen: list[tuple[str, int, int]] = []

    assert await sessions.reindex(anywhere, lambda *told: seen.append(told)) == 21

    assert seen[-1][1:] == (21, 21)
    assert len(await sessions.search(anywhere, owner, "kate", "needle")) == 1
