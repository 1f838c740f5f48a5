"""Transcript files equal the store's export after any crash, with one header."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path as File
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.flaky_mirror import FlakyMirror
from tests.support.logs import captured_logs
from tests.support.stores import advance_clock, open_ports
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.sessions import sessions, transcript_mirror, transcripts
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.transcript_mirror import (
    RETRY_MS,
    MirrorFollower,
    delete_expired,
    run_mirror,
)
from carrel.adapters.filesystem.transcript_directory import CLAIM_FILE, DirectoryTranscriptMirror
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.sessions.session import encode_entries, parse_transcript
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

IDS = [f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in range(4)]
DAY = 86_400_000


@pytest.fixture
async def owner(anywhere: Ports) -> Actor:
    _, owner = await create_tenant(anywhere)
    await create_agent(anywhere, owner, "kate", "kate")
    return owner


async def create_agent(ports: Ports, owner: Actor, slug: str, folder: str | None) -> str:
    config = {} if folder is None else {"transcriptsDir": folder}
    return (await agents.create(ports, owner, NewAgent(slug, slug.title(), config=config))).id


async def append_texts(
    ports: Ports, owner: Actor, id: str, *texts: str, agent: str = "kate"
) -> None:
    await sessions.start(ports, owner, agent, id=id)
    if texts:
        await sessions.append(ports, owner, agent, id, [NewEntry("user", text) for text in texts])


async def export(ports: Ports, owner: Actor, id: str, agent: str = "kate") -> bytes:
    session = await sessions.get(ports, owner, agent, id)
    return b"".join([chunk async for chunk in transcripts.export_jsonl(ports, session)])


def read_files(root: File) -> dict[str, bytes]:
    """The transcripts below a directory, by path."""
    return {
        str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*.jsonl"))
    }


async def test_entries_are_written_to_the_file_of_their_session(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await create_agent(anywhere, owner, "marco", None)
    await append_texts(anywhere, owner, IDS[0], "before")
    await append_texts(anywhere, owner, IDS[1], "not mirrored", agent="marco")
    follower = MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path / "root"))

    assert await follower.catch_up() == 1
    await append_texts(anywhere, owner, IDS[0], "one", "two")
    await append_texts(anywhere, owner, IDS[2])
    assert await follower.catch_up() == 2
    assert await follower.catch_up() == 0

    assert read_files(tmp_path / "root") == {
        f"kate/{id}.jsonl": await export(anywhere, owner, id) for id in (IDS[0], IDS[2])
    }


async def test_a_file_started_under_another_slug_is_continued(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await append_texts(anywhere, owner, IDS[0], "before")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()
    first_content = read_files(tmp_path)[f"kate/{IDS[0]}.jsonl"]
    await agents.patch(anywhere, owner, "kate", {"slug": "katherine"})
    await append_texts(anywhere, owner, IDS[0], "after", agent="katherine")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()

    [content] = read_files(tmp_path).values()
    assert content.startswith(first_content)
    assert b'"agent_id":"kate"' in first_content
    assert [entry.content for entry in parse_transcript(content).entries] == ["before", "after"]


async def test_an_agent_that_gets_a_directory_later_is_mirrored_completely(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await create_agent(anywhere, owner, "marco", None)
    await append_texts(anywhere, owner, IDS[0], "long ago", agent="marco")
    follower = MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    advance_clock(anywhere, 3 * DAY)
    await follower.catch_up()
    assert read_files(tmp_path) == {}

    await agents.patch(anywhere, owner, "marco", {"config": {"transcriptsDir": "a/b"}})
    await follower.catch_up()

    assert list(read_files(tmp_path)) == [f"a/b/{IDS[0]}.jsonl"]


@pytest.mark.parametrize("folder", ["../out", "a/../../out", "..", "a/..", "a\0b", "a\\..\\b"])
async def test_a_directory_that_escapes_the_root_is_refused(
    ports: Ports, tmp_path: File, folder: str
) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError, match="transcriptsDir"):
        await create_agent(ports, owner, "kate", folder)
    with pytest.raises(ValidationError):
        await DirectoryTranscriptMirror(tmp_path).claim(folder.replace("\\", "/"), "o", {})


async def test_a_directory_outside_the_root_is_never_written(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    folders = {
        "kate": str(outside),
        "marco": "link",
        "luis": "link/deeper",
        "ada": str(root / "in"),
    }
    for n, (slug, folder) in enumerate(folders.items()):
        await create_agent(ports, owner, slug, folder)
        await append_texts(ports, owner, IDS[n], "x", agent=slug)

    with captured_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(root)).catch_up()

    assert list(outside.iterdir()) == []
    assert list(read_files(root)) == [f"in/{IDS[3]}.jsonl"]
    assert [log["error"] for log in logs] == ["ValidationError"] * 3


async def test_two_agents_never_share_a_directory(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    _, stranger = await create_tenant(ports, "globex")
    for actor, slug, n in ((owner, "kate", 0), (owner, "marco", 1), (stranger, "kate", 2)):
        await create_agent(ports, actor, slug, "same" if n else "./same/")
        await append_texts(ports, actor, IDS[n], f"{n}", agent=slug)

    for _ in range(2):  # a restarted process keeps the existing claims
        with captured_logs() as logs:
            follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
            await follower.catch_up()
        [existing] = read_files(tmp_path)
        assert [log["error"] for log in logs] == ["Conflict"] * 2

    index = next(n for n in range(3) if IDS[n] in existing)
    actor, slug = [(owner, "kate"), (owner, "marco"), (stranger, "kate")][index]
    await agents.patch(ports, actor, slug, {"config": {"transcriptsDir": "elsewhere"}})
    await follower.catch_up()
    advance_clock(ports, RETRY_MS)
    await follower.catch_up()
    assert len(read_files(tmp_path)) == 3
    assert len(list((tmp_path / "same").glob("*.jsonl"))) == 2


async def test_a_file_of_another_session_is_not_changed(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    await append_texts(ports, owner, IDS[0], "ours")
    theirs = b'{"type":"session","version":1,"id":"x","timestamp":"2026-01-01T00:00:00Z"'
    theirs += b',"agent_id":"y","source_plugin":""}\n'
    (tmp_path / "kate").mkdir()
    (tmp_path / "kate" / f"{IDS[0]}.jsonl").write_bytes(theirs)

    with captured_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path)).catch_up()

    assert list(read_files(tmp_path).values()) == [theirs]
    assert [log["error"] for log in logs] == ["Conflict"]


async def test_a_link_in_place_of_a_file_is_not_followed(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    await append_texts(ports, owner, IDS[0], "ours")
    (tmp_path / "kate").mkdir()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "kate" / f"{IDS[0]}.jsonl").symlink_to(tmp_path / "victim")

    with captured_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path)).catch_up()

    assert (tmp_path / "victim").read_text() == "mine"
    assert [log["error"] for log in logs] == ["OSError"]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
async def test_a_torn_file_is_repaired(tmp_path: File, data: st.DataObject) -> None:
    directory = File(mkdtemp(dir=tmp_path))
    (directory / "transcripts").mkdir()
    async with open_ports(directory) as ports:
        _, owner = await create_tenant(ports)
        await create_agent(ports, owner, "kate", "kate")
        texts = [f"line {n} é" for n in range(data.draw(st.integers(0, 4)))]
        await append_texts(ports, owner, IDS[0], *texts)
        mirror = DirectoryTranscriptMirror(directory / "transcripts")
        await MirrorFollower(ports, mirror).catch_up()
        [file] = (directory / "transcripts/kate").glob("*.jsonl")
        content = file.read_bytes()
        file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        await append_texts(ports, owner, IDS[0], "after")

        await MirrorFollower(ports, mirror).catch_up()

        assert file.read_bytes() == await export(ports, owner, IDS[0])


@pytest.mark.parametrize("damage", ["lost", "longer", "scribbled", "blank"])
async def test_a_damaged_file_is_rewritten(ports: Ports, tmp_path: File, damage: str) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    await append_texts(ports, owner, IDS[0], "one", "two")
    follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    file = tmp_path / "kate" / f"{IDS[0]}.jsonl"
    content = file.read_bytes()
    last = content.split(b"\n")[-2] + b"\n"
    changed = {"longer": content + last * 3, "scribbled": content + b"note\n", "blank": b""}
    file.unlink() if damage == "lost" else file.write_bytes(changed[damage])

    await append_texts(ports, owner, IDS[0], "three")
    await follower.catch_up()

    assert file.read_bytes() == await export(ports, owner, IDS[0])


async def test_many_processes_write_each_line_once(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    """Even if two of them believe that they hold the lock."""
    await append_texts(anywhere, owner, IDS[0], *[f"{n}" for n in range(20)])
    followers = [MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)) for _ in range(4)]
    for turn in range(5):
        with captured_logs():
            await asyncio.gather(*[follower.catch_up() for follower in followers])
        await append_texts(anywhere, owner, IDS[0], *[f"turn {turn}: {n}" for n in range(7)])
        advance_clock(anywhere, RETRY_MS)
    await followers[0].catch_up()
    advance_clock(anywhere, RETRY_MS)
    await followers[0].catch_up()

    assert read_files(tmp_path)[f"kate/{IDS[0]}.jsonl"] == await export(anywhere, owner, IDS[0])


async def test_an_append_after_another_processs_append_is_refused(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    await append_texts(ports, owner, IDS[0], "one")
    session = await sessions.get(ports, owner, "kate", IDS[0])
    lines = encode_entries(await ports.sessions.read(session.tenant, session.agent, session.id))
    first, second = DirectoryTranscriptMirror(tmp_path), DirectoryTranscriptMirror(tmp_path)
    for mirror in (first, second):
        await mirror.claim("kate", "o", {})
        assert await mirror.find_position("kate", session, "kate") == 0

    await second.append("kate", session, 0, lines, 1)
    with pytest.raises(OSError, match="changed by another process"):
        await first.append("kate", session, 0, lines, 1)

    assert list(read_files(tmp_path).values()) == [await export(ports, owner, IDS[0])]
    assert await first.find_position("kate", session, "kate") == 1


async def test_a_failed_append_is_retried(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    await append_texts(ports, owner, IDS[0], "one", "two")
    mirror = FlakyMirror(tmp_path)
    mirror.failures_left = 2
    follower = MirrorFollower(ports, mirror)

    with captured_logs() as logs:
        for _ in range(3):
            await follower.catch_up()
            advance_clock(ports, RETRY_MS)

    assert [log["said"] for log in logs] == ["no space left"] * 2
    assert read_files(tmp_path)[f"kate/{IDS[0]}.jsonl"] == await export(ports, owner, IDS[0])


async def test_one_of_many_processes_mirrors_until_it_is_stopped(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    stop = asyncio.Event()
    locks = [FileLeaderLock(tmp_path / "lock", "transcripts") for _ in range(3)]
    tasks = [
        asyncio.create_task(run_mirror(ports, DirectoryTranscriptMirror(tmp_path), lock, stop))
        for lock in locks[:2]
    ]
    await append_texts(ports, owner, IDS[0], "hello")
    while len(parse_transcript(b"".join(read_files(tmp_path).values())).entries) < 1:
        await asyncio.wait(tasks, timeout=0.01)
    stop.set()
    await asyncio.gather(*tasks)

    assert await locks[2].try_acquire()
    await locks[2].release()
    assert (
        (tmp_path / "kate" / CLAIM_FILE)
        .read_text()
        .strip()
        .endswith("/" + (await agents.get(ports, owner, "kate")).id)
    )


async def test_expired_sessions_are_deleted_with_their_files(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await create_agent(anywhere, owner, "marco", None)
    await append_texts(anywhere, owner, IDS[0], "old")
    await append_texts(anywhere, owner, IDS[1], "old too", agent="marco")
    await append_texts(anywhere, owner, IDS[2], "old at first")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()
    advance_clock(anywhere, DAY)
    await append_texts(anywhere, owner, IDS[2], "and new")
    await append_texts(anywhere, owner, IDS[3], "new")

    async def delete_older_than(days: int) -> int:
        before = anywhere.clock.now() - days * DAY + 1000
        return await delete_expired(anywhere, DirectoryTranscriptMirror(tmp_path), before)

    assert await delete_older_than(2) == 0
    assert await delete_older_than(1) == 2
    assert await delete_older_than(1) == 0

    assert list(read_files(tmp_path)) == [f"kate/{IDS[2]}.jsonl"]
    remaining = (await sessions.list_sessions(anywhere, owner, "kate")).items
    assert [session.id for session in remaining] == [IDS[3], IDS[2]]
    assert (await sessions.list_sessions(anywhere, owner, "marco")).items == ()
    assert await search_contents(anywhere, owner) == ["old at first"]


async def search_contents(ports: Ports, owner: Actor) -> Sequence[Any]:
    hits = await sessions.search(ports, owner, "kate", "old")
    return [hit.entry.content for hit in hits]


async def test_more_sessions_than_a_page_are_mirrored_and_deleted(
    ports: Ports, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_mirror, "_PAGE_SIZE", 2)
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "kate", "kate")
    ids = [(await sessions.start(ports, owner, "kate")).id for _ in range(7)]
    for id in ids:
        await append_texts(ports, owner, id, "one", "two", "three", "four", "five")
    follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    expected = {f"kate/{id}.jsonl": await export(ports, owner, id) for id in ids}
    assert read_files(tmp_path) == expected

    for id in ids:
        await append_texts(ports, owner, id, "six")
    assert await follower.catch_up() == 7
    advance_clock(ports, DAY)
    assert await delete_expired(ports, DirectoryTranscriptMirror(tmp_path), ports.clock.now()) == 7
    assert read_files(tmp_path) == {}
