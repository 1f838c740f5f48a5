"""Sessions: access, stored entries, pages and search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant, race

from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.sessions import sessions, transcripts
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.sessions import MAX_ENTRIES_PER_APPEND
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions.session import MAX_CONTENT_BYTES, SpeakerRole, parse_transcript
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


async def append_texts(
    ports: Ports, owner: Actor, *texts: str, agent: str = "kate", id: str = ID
) -> None:
    await sessions.append(ports, owner, agent, id, [NewEntry("user", text) for text in texts])


async def test_a_session_starts_with_a_supplied_id_or_a_new_one(
    anywhere: Ports, owner: Actor
) -> None:
    own = await sessions.start(anywhere, owner, "kate", id=ID, plugin="web")
    fresh = [await sessions.start(anywhere, owner, "kate") for _ in range(2)]

    assert (own.id, own.plugin, own.mode) == (ID, "web", Audience.MAIN)
    assert len({own.id, *[session.id for session in fresh]}) == 3
    assert await sessions.get(anywhere, owner, "kate", ID) == own


@pytest.mark.parametrize(
    ("scope", "mode"),
    [
        (None, Audience.MAIN),
        ("main", Audience.MAIN),
        ("shared", Audience.SHARED),
        ("Main", Audience.SHARED),
    ],
)
async def test_an_unknown_scope_is_shared(
    anywhere: Ports, owner: Actor, scope: str | None, mode: Audience
) -> None:
    assert (await sessions.start(anywhere, owner, "kate", id=ID, scope=scope)).mode is mode


async def test_starting_a_session_again_returns_it_unchanged(anywhere: Ports, owner: Actor) -> None:
    first = await sessions.start(anywhere, owner, "kate", id=ID, scope="shared", plugin="web")
    advance_clock(anywhere, 1000)

    again, new = await sessions.start_or_get(
        anywhere, owner, "kate", sessions.SessionRequest(ID, plugin="x", scope="main")
    )

    assert (again, new) == (first, False)
    other = await sessions.start(anywhere, owner, "marco", id=ID)
    assert (other.id, other.agent) != (first.id, first.agent)


async def test_entries_are_numbered_and_exported(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID, plugin="telegram")
    new_entries = [
        NewEntry("user", "hello", "m-1", "telegram", "user123"),
        NewEntry("assistant", "hello Luis"),
    ]

    stored = await sessions.append(anywhere, owner, "kate", ID, new_entries)

    assert [(entry.sequence, entry.role, entry.content) for entry in stored] == [
        (1, SpeakerRole.USER, "hello"),
        (2, SpeakerRole.ASSISTANT, "hello Luis"),
    ]
    session, listed = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert (listed, session.entry_count) == (stored, 2)
    lines = b"".join([chunk async for chunk in transcripts.export_jsonl(anywhere, session)])
    transcript = parse_transcript(lines)
    assert transcript.header and transcript.header.agent == "kate"
    assert transcript.entries == stored


async def test_a_long_transcript_is_exported_completely(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    for _ in range(12):
        await append_texts(anywhere, owner, *["x"] * 100)
    session = await sessions.get(anywhere, owner, "kate", ID)
    chunks = [chunk async for chunk in transcripts.export_jsonl(anywhere, session)]
    assert len(chunks) > 2
    assert len(parse_transcript(b"".join(chunks)).entries) == 1200


async def test_secrets_are_redacted_in_every_field(anywhere: Ports, owner: Actor) -> None:
    await secrets.put(anywhere, owner, "db", VALUE)
    await sessions.start(anywhere, owner, "kate", id=ID, plugin=VALUE)
    entry = NewEntry("tool", f"the password is {VALUE}!", VALUE, VALUE, VALUE)

    [stored] = await sessions.append(anywhere, owner, "kate", ID, [entry])

    assert stored.content == "the password is [REDACTED:db]!"
    session = await sessions.get(anywhere, owner, "kate", ID)
    exported = b"".join([chunk async for chunk in transcripts.export_jsonl(anywhere, session)])
    assert b"hunter2" not in exported
    assert exported.count(b"[REDACTED:db]") == 5
    assert await sessions.search(anywhere, owner, "kate", "hunter2") == ()


@pytest.mark.parametrize(
    ("new_entries", "refusal"),
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
async def test_an_invalid_entry_refuses_the_complete_append(
    anywhere: Ports, owner: Actor, new_entries: list[NewEntry], refusal: type[Exception]
) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    with pytest.raises(refusal):
        await sessions.append(anywhere, owner, "kate", ID, new_entries)
    assert (await sessions.get(anywhere, owner, "kate", ID)).entry_count == 0


async def test_an_entry_of_the_maximum_size_is_stored(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await append_texts(anywhere, owner, "x" * MAX_CONTENT_BYTES, "a \0 b", "")
    _, [_, *rest] = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert [entry.content for entry in rest] == ["a \0 b", ""]


async def test_an_append_to_a_closed_session_is_refused(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await append_texts(anywhere, owner, "a question without an answer")
    closed = await sessions.close(anywhere, owner, "kate", ID)
    advance_clock(anywhere, 1000)

    assert closed.ended_at is not None
    assert await sessions.close(anywhere, owner, "kate", ID) == closed
    with pytest.raises(Conflict, match="closed"):
        await append_texts(anywhere, owner, "too late")
    _, entries = await sessions.list_entries(anywhere, owner, "kate", ID)
    assert [entry.content for entry in entries] == ["a question without an answer"]


async def test_sessions_are_accessible_only_through_their_agent(
    anywhere: Ports, owner: Actor
) -> None:
    _, stranger = await create_tenant(anywhere, "globex")
    await agents.create(anywhere, stranger, NewAgent("kate", "Kate"))
    kate = await agents.get(anywhere, owner, "kate")
    marco = await agents.get(anywhere, owner, "marco")
    await sessions.start(anywhere, owner, "kate", id=ID)
    await append_texts(anywhere, owner, "a private word")
    bound = replace(owner, agent=marco.id)

    attempts: list[tuple[Actor, str]] = [(owner, "marco"), (stranger, "kate"), (bound, "kate")]
    for actor, agent in [*attempts, (stranger, kate.id), (bound, "marco"), (owner, "missing")]:
        operations: list[Any] = [
            sessions.get,
            sessions.close,
            sessions.list_entries,
            sessions.list_recent_entries,
        ]
        for operation in operations:
            with pytest.raises(NotFound):
                await operation(anywhere, actor, agent, ID)
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
    for missing in ("", "x", "../x", "\0", f"{ID}.jsonl"):
        with pytest.raises(NotFound):
            await sessions.get(anywhere, owner, "kate", missing)
    for invalid in ("", "\0", "x" * 256):
        with pytest.raises(ValidationError):
            await sessions.start(anywhere, owner, "kate", id=invalid)


async def test_sessions_are_listed_in_pages_by_their_last_entry(
    anywhere: Ports, owner: Actor
) -> None:
    ids = []
    for n in range(5):
        scope = "shared" if n % 2 else None
        ids.append((await sessions.start(anywhere, owner, "kate", scope=scope)).id)
        advance_clock(anywhere, 10)
    await append_texts(anywhere, owner, "x", id=ids[0])

    listed: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await sessions.list_sessions(anywhere, owner, "kate", cursor=cursor, limit=2)
        assert page.total == (None if cursor else len(ids))
        listed += [session.id for session in page.items]
        cursor = page.next
    assert listed == [ids[0], *reversed(ids[1:])]
    shared = await sessions.list_sessions(anywhere, owner, "kate", mode=Audience.SHARED)
    assert [session.id for session in shared.items] == [ids[3], ids[1]]
    first_page = await sessions.list_sessions(
        anywhere, owner, "kate", mode=Audience.SHARED, limit=1
    )
    assert first_page.total == 2
    for invalid in ("x", "1", "-1.x", f"{'9' * 19}.{ID}", f"1.{ID}x"):
        with pytest.raises(ValidationError):
            await sessions.list_sessions(anywhere, owner, "kate", cursor=invalid)


async def test_the_most_recent_entries_are_listed_in_order(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    assert (await sessions.list_recent_entries(anywhere, owner, "kate", ID))[1] == ()
    await append_texts(anywhere, owner, *[str(n) for n in range(30)])

    _, entries = await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=3)
    assert [entry.content for entry in entries] == ["27", "28", "29"]
    assert len((await sessions.list_recent_entries(anywhere, owner, "kate", ID))[1]) == 10
    assert (
        len((await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=500))[1]) == 30
    )
    assert (await sessions.list_recent_entries(anywhere, owner, "kate", ID, limit=0))[1] == ()


async def test_the_best_search_hit_is_first(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    other = (await sessions.start(anywhere, owner, "kate", scope="shared")).id
    await append_texts(anywhere, owner, "the Café in New York opens at nine")
    advance_clock(anywhere, 5)
    await append_texts(anywhere, owner, "a new thing", "york is new to me", id=other)

    async def search(query: str, **options: Any) -> list[str]:
        hits = await sessions.search(anywhere, owner, "kate", query, **options)
        return [hit.entry.content for hit in hits]

    assert await search("new york") == [
        "the Café in New York opens at nine",
        "york is new to me",
        "a new thing",
    ]
    assert await search("cafe") == ["the Café in New York opens at nine"]
    assert await search("new york", limit=1) == ["the Café in New York opens at nine"]
    assert await search("new york", mode=Audience.SHARED) == ["york is new to me", "a new thing"]
    assert await search("…") == []
    assert await search(" ".join(f"w{n}" for n in range(1000))) == []


async def test_16_writers_on_a_new_session_give_one_header_and_all_entries(
    anywhere: Ports, owner: Actor
) -> None:
    async def write(n: int) -> None:
        await sessions.start(anywhere, owner, "kate", id=ID)
        for turn in range(3):
            await append_texts(anywhere, owner, f"{n}: {turn}")

    _, failed = await race(*[write(n) for n in range(16)])

    assert not failed
    session = await sessions.get(anywhere, owner, "kate", ID)
    lines = b"".join([chunk async for chunk in transcripts.export_jsonl(anywhere, session)])
    transcript = parse_transcript(lines)
    assert lines.count(b'"type":"session"') == 1
    assert lines.startswith(b'{"type":"session"')
    assert (transcript.skipped, [entry.sequence for entry in transcript.entries]) == (
        0,
        list(range(1, 49)),
    )
    assert {entry.content for entry in transcript.entries} == {
        f"{n}: {turn}" for n in range(16) for turn in range(3)
    }


async def test_the_full_text_index_can_be_rebuilt(anywhere: Ports, owner: Actor) -> None:
    await sessions.start(anywhere, owner, "kate", id=ID)
    await append_texts(anywhere, owner, "needle", *["hay"] * 20)
    await anywhere.sessions.clear_index()
    assert await sessions.search(anywhere, owner, "kate", "needle") == ()
    progress: list[tuple[str, int, int]] = []

    assert await transcripts.reindex(anywhere, lambda *step: progress.append(step)) == 21

    assert progress[-1][1:] == (21, 21)
    assert len(await sessions.search(anywhere, owner, "kate", "needle")) == 1
