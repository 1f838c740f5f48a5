"""Transcripts as files: after any crash, each is what the store would export, with one header."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path as File
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.support.stores import advance_clock, open_ports
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.sessions import sessions, transcript_mirror
from carrel.actions.sessions.sessions import NewEntry
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
from carrel.core.sessions import Session, encode_entries, parse_transcript
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

IDS = [f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in range(4)]
DAY = 86_400_000


@pytest.fixture
async def owner(anywhere: Ports) -> Actor:
    _, owner = await create_tenant(anywhere)
    await hire(anywhere, owner, "kate", "kate")
    return owner


async def hire(ports: Ports, owner: Actor, slug: str, folder: str | None) -> str:
    config = {} if folder is None else {"transcriptsDir": folder}
    return (await agents.create(ports, owner, NewAgent(slug, slug.title(), config=config))).id


async def talk(ports: Ports, owner: Actor, id: str, *texts: str, agent: str = "kate") -> None:
    await sessions.start(ports, owner, agent, id=id)
    if texts:
        await sessions.append(ports, owner, agent, id, [NewEntry("user", text) for text in texts])


async def exported(ports: Ports, owner: Actor, id: str, agent: str = "kate") -> bytes:
    session = await sessions.get(ports, owner, agent, id)
    return b"".join([some async for some in sessions.export_jsonl(ports, session)])


def files(root: File) -> dict[str, bytes]:
    """The transcripts beneath a directory, by their path."""
    return {str(one.relative_to(root)): one.read_bytes() for one in sorted(root.rglob("*.jsonl"))}


async def test_what_is_said_is_written_to_a_file_of_its_session(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await hire(anywhere, owner, "marco", None)
    await talk(anywhere, owner, IDS[0], "before")
    await talk(anywhere, owner, IDS[1], "not mirrored", agent="marco")
    follower = MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path / "root"))

    assert await follower.catch_up() == 1
    await talk(anywhere, owner, IDS[0], "one", "two")
    await talk(anywhere, owner, IDS[2])
    assert await follower.catch_up() == 2
    assert await follower.catch_up() == 0

    assert files(tmp_path / "root") == {
        f"kate/{id}.jsonl": await exported(anywhere, owner, id) for id in (IDS[0], IDS[2])
    }


async def test_a_file_that_was_begun_under_another_slug_is_gone_on_with(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await talk(anywhere, owner, IDS[0], "before")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()
    began = files(tmp_path)[f"kate/{IDS[0]}.jsonl"]
    await agents.patch(anywhere, owner, "kate", {"slug": "katherine"})
    await talk(anywhere, owner, IDS[0], "after", agent="katherine")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()

    [now] = files(tmp_path).values()
    assert now.startswith(began)
    assert b'"agent_id":"kate"' in began
    assert [one.content for one in parse_transcript(now).entries] == ["before", "after"]


async def test_an_agent_that_gets_a_directory_later_is_mirrored_from_its_beginning(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await hire(anywhere, owner, "marco", None)
    await talk(anywhere, owner, IDS[0], "long ago", agent="marco")
    follower = MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    advance_clock(anywhere, 3 * DAY)
    await follower.catch_up()
    assert files(tmp_path) == {}

    await agents.patch(anywhere, owner, "marco", {"config": {"transcriptsDir": "a/b"}})
    await follower.catch_up()

    assert list(files(tmp_path)) == [f"a/b/{IDS[0]}.jsonl"]


@pytest.mark.parametrize("folder", ["../out", "a/../../out", "..", "a/..", "a\0b", "a\\..\\b"])
async def test_a_directory_that_leads_out_is_refused_at_once(
    ports: Ports, tmp_path: File, folder: str
) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError, match="transcriptsDir"):
        await hire(ports, owner, "kate", folder)
    with pytest.raises(ValidationError):
        await DirectoryTranscriptMirror(tmp_path).claim(folder.replace("\\", "/"), "o", {})


async def test_a_directory_outside_of_the_root_is_never_written_to(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    wanted = {"kate": str(outside), "marco": "link", "luis": "link/deeper", "ada": str(root / "in")}
    for n, (slug, folder) in enumerate(wanted.items()):
        await hire(ports, owner, slug, folder)
        await talk(ports, owner, IDS[n], "x", agent=slug)

    with capture_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(root)).catch_up()

    assert list(outside.iterdir()) == []
    assert list(files(root)) == [f"in/{IDS[3]}.jsonl"]
    assert [log["error"] for log in logs] == ["ValidationError"] * 3


async def test_two_agents_never_share_a_directory(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    _, stranger = await create_tenant(ports, "globex")
    for actor, slug, n in ((owner, "kate", 0), (owner, "marco", 1), (stranger, "kate", 2)):
        await hire(ports, actor, slug, "same" if n else "./same/")
        await talk(ports, actor, IDS[n], f"{n}", agent=slug)

    for _ in range(2):  # a process that begins anew lets everybody keep what they have
        with capture_logs() as logs:
            follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
            await follower.catch_up()
        [held] = files(tmp_path)
        assert [log["error"] for log in logs] == ["Conflict"] * 2

    whose = next(n for n in range(3) if IDS[n] in held)
    actor, slug = [(owner, "kate"), (owner, "marco"), (stranger, "kate")][whose]
    await agents.patch(ports, actor, slug, {"config": {"transcriptsDir": "elsewhere"}})
    await follower.catch_up()
    advance_clock(ports, RETRY_MS)
    await follower.catch_up()
    assert len(files(tmp_path)) == 3
    assert len(list((tmp_path / "same").glob("*.jsonl"))) == 2


async def test_a_file_of_another_session_is_left_alone(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    await talk(ports, owner, IDS[0], "ours")
    theirs = b'{"type":"session","version":1,"id":"x","timestamp":"2026-01-01T00:00:00Z"'
    theirs += b',"agent_id":"y","source_plugin":""}\n'
    (tmp_path / "kate").mkdir()
    (tmp_path / "kate" / f"{IDS[0]}.jsonl").write_bytes(theirs)

    with capture_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path)).catch_up()

    assert list(files(tmp_path).values()) == [theirs]
    assert [log["error"] for log in logs] == ["Conflict"]


async def test_a_link_in_place_of_a_file_is_not_followed(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    await talk(ports, owner, IDS[0], "ours")
    (tmp_path / "kate").mkdir()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "kate" / f"{IDS[0]}.jsonl").symlink_to(tmp_path / "victim")

    with capture_logs() as logs:
        await MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path)).catch_up()

    assert (tmp_path / "victim").read_text() == "mine"
    assert [log["error"] for log in logs] == ["OSError"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
async def test_however_a_file_was_torn_it_is_mended(tmp_path: File, data: st.DataObject) -> None:
    directory = File(mkdtemp(dir=tmp_path))
    (directory / "transcripts").mkdir()
    async with open_ports(directory) as ports:
        _, owner = await create_tenant(ports)
        await hire(ports, owner, "kate", "kate")
        texts = [f"line {n} é" for n in range(data.draw(st.integers(0, 4)))]
        await talk(ports, owner, IDS[0], *texts)
        mirror = DirectoryTranscriptMirror(directory / "transcripts")
        await MirrorFollower(ports, mirror).catch_up()
        [file] = (directory / "transcripts/kate").glob("*.jsonl")
        content = file.read_bytes()
        file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        await talk(ports, owner, IDS[0], "after")

        await MirrorFollower(ports, mirror).catch_up()

        assert file.read_bytes() == await exported(ports, owner, IDS[0])


@pytest.mark.parametrize("harm", ["lost", "longer", "scribbled", "blank"])
async def test_a_file_that_somebody_changed_is_written_anew(
    ports: Ports, tmp_path: File, harm: str
) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    await talk(ports, owner, IDS[0], "one", "two")
    follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    file = tmp_path / "kate" / f"{IDS[0]}.jsonl"
    content = file.read_bytes()
    last = content.split(b"\n")[-2] + b"\n"
    changed = {"longer": content + last * 3, "scribbled": content + b"note\n", "blank": b""}
    file.unlink() if harm == "lost" else file.write_bytes(changed[harm])

    await talk(ports, owner, IDS[0], "three")
    await follower.catch_up()

    assert file.read_bytes() == await exported(ports, owner, IDS[0])


async def test_many_processes_write_each_line_once(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    """Even where two believe that it is their turn."""
    await talk(anywhere, owner, IDS[0], *[f"{n}" for n in range(20)])
    followers = [MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)) for _ in range(4)]
    for turn in range(5):
        with capture_logs():
            await asyncio.gather(*[follower.catch_up() for follower in followers])
        await talk(anywhere, owner, IDS[0], *[f"turn {turn}: {n}" for n in range(7)])
        advance_clock(anywhere, RETRY_MS)
    await followers[0].catch_up()
    advance_clock(anywhere, RETRY_MS)
    await followers[0].catch_up()

    assert files(tmp_path)[f"kate/{IDS[0]}.jsonl"] == await exported(anywhere, owner, IDS[0])


async def test_whoever_was_overtaken_adds_nothing(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    await talk(ports, owner, IDS[0], "one")
    session = await sessions.get(ports, owner, "kate", IDS[0])
    said = encode_entries(await ports.sessions.read(session.tenant, session.id))
    first, second = DirectoryTranscriptMirror(tmp_path), DirectoryTranscriptMirror(tmp_path)
    for mirror in (first, second):
        await mirror.claim("kate", "o", {})
        assert await mirror.count_entries("kate", session, "kate") == 0

    await second.append("kate", session, 0, said, 1)
    with pytest.raises(OSError, match="changed by another process"):
        await first.append("kate", session, 0, said, 1)

    assert list(files(tmp_path).values()) == [await exported(ports, owner, IDS[0])]
    assert await first.count_entries("kate", session, "kate") == 1


class Flaky(DirectoryTranscriptMirror):
    """A disk that is full now and then, and has written half a line by then."""

    fails = 0

    def _add(self, folder: str, session: Session, after: int, lines: bytes, count: int) -> None:
        if self.fails:
            self.fails -= 1
            file = self._resolve_directory(folder) / f"{session.id}.jsonl"
            with file.open("ab") as opened:
                opened.write(lines[: len(lines) // 2])
            raise OSError("no space left")
        super()._add(folder, session, after, lines, count)


async def test_what_failed_is_tried_again(ports: Ports, tmp_path: File) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    await talk(ports, owner, IDS[0], "one", "two")
    mirror = Flaky(tmp_path)
    mirror.fails = 2
    follower = MirrorFollower(ports, mirror)

    with capture_logs() as logs:
        for _ in range(3):
            await follower.catch_up()
            advance_clock(ports, RETRY_MS)

    assert [log["said"] for log in logs] == ["no space left"] * 2
    assert files(tmp_path)[f"kate/{IDS[0]}.jsonl"] == await exported(ports, owner, IDS[0])


async def test_one_of_many_processes_mirrors_until_told_to_stop(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    stop = asyncio.Event()
    locks = [FileLeaderLock(tmp_path / "lock", "transcripts") for _ in range(3)]
    works = [
        asyncio.create_task(run_mirror(ports, DirectoryTranscriptMirror(tmp_path), lock, stop))
        for lock in locks[:2]
    ]
    await talk(ports, owner, IDS[0], "hello")
    while len(parse_transcript(b"".join(files(tmp_path).values())).entries) < 1:
        await asyncio.wait(works, timeout=0.01)
    stop.set()
    await asyncio.gather(*works)

    assert await locks[2].try_acquire()
    await locks[2].release()
    assert (
        (tmp_path / "kate" / CLAIM_FILE)
        .read_text()
        .strip()
        .endswith("/" + (await agents.get(ports, owner, "kate")).id)
    )


async def test_sessions_that_have_had_their_time_go_with_their_files(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    await hire(anywhere, owner, "marco", None)
    await talk(anywhere, owner, IDS[0], "old")
    await talk(anywhere, owner, IDS[1], "old too", agent="marco")
    await talk(anywhere, owner, IDS[2], "old at first")
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path)).catch_up()
    advance_clock(anywhere, DAY)
    await talk(anywhere, owner, IDS[2], "and new")
    await talk(anywhere, owner, IDS[3], "new")

    async def gone(days: int) -> int:
        before = anywhere.clock.now() - days * DAY + 1000
        return await delete_expired(anywhere, DirectoryTranscriptMirror(tmp_path), before)

    assert await gone(2) == 0
    assert await gone(1) == 2
    assert await gone(1) == 0

    assert list(files(tmp_path)) == [f"kate/{IDS[2]}.jsonl"]
    kept = (await sessions.list_sessions(anywhere, owner, "kate")).items
    assert [one.id for one in kept] == [IDS[3], IDS[2]]
    assert (await sessions.list_sessions(anywhere, owner, "marco")).items == ()
    assert await words_found(anywhere, owner) == ["and new", "old at first"]


async def words_found(ports: Ports, owner: Actor) -> Sequence[Any]:
    hits = await sessions.search(ports, owner, "kate", "old and")
    return [hit.entry.content for hit in hits]


async def test_more_sessions_than_are_looked_at_at_a_time(
    ports: Ports, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_mirror, "_PAGE_SIZE", 2)
    _, owner = await create_tenant(ports)
    await hire(ports, owner, "kate", "kate")
    ids = [(await sessions.start(ports, owner, "kate")).id for _ in range(7)]
    for id in ids:
        await talk(ports, owner, id, "one", "two", "three", "four", "five")
    follower = MirrorFollower(ports, DirectoryTranscriptMirror(tmp_path))
    await follower.catch_up()
    expected = {f"kate/{id}.jsonl": await exported(ports, owner, id) for id in ids}
    assert files(tmp_path) == expected

    for id in ids:
        await talk(ports, owner, id, "six")
    assert await follower.catch_up() == 7
    advance_clock(ports, DAY)
    assert await delete_expired(ports, DirectoryTranscriptMirror(tmp_path), ports.clock.now()) == 7
    assert files(tmp_path) == {}
