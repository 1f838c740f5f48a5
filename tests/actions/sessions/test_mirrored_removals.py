"""Transcript files of any session id, and after entries were removed."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.actions.sessions.test_transcript_mirror import (
    append_texts,
    create_agent,
    export,
    read_files,
)
from tests.support.tenants import create_tenant

from carrel.actions.sessions import removals
from carrel.actions.sessions.transcript_mirror import MirrorFollower
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.core.access import Actor
from carrel.core.sessions.session_ids import transcript_file_name
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ODD_IDS = (
    *("../../escape", "/etc/passwd", "..", "Ada", "ada", "a\\b", "x" * 255, "☕"),
    ".carrel-agent",
)


@pytest.fixture
async def owner(anywhere: Ports) -> Actor:
    _, owner = await create_tenant(anywhere)
    await create_agent(anywhere, owner, "kate", "kate")
    return owner


async def test_every_session_id_has_a_file_of_its_own_in_the_directory(
    anywhere: Ports, owner: Actor, tmp_path: File
) -> None:
    for id in ODD_IDS:
        await append_texts(anywhere, owner, id, f"in {id}")
    root = tmp_path / "root"
    await MirrorFollower(anywhere, DirectoryTranscriptMirror(root)).catch_up()

    assert read_files(tmp_path) == {
        f"root/kate/{transcript_file_name(id)}": await export(anywhere, owner, id) for id in ODD_IDS
    }
    names = [file.name.lower() for file in (root / "kate").iterdir()]
    assert len(set(names)) == len(ODD_IDS) + 1


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_file_follows_removals(
    anywhere: Ports, owner: Actor, tmp_path: File, restarts: bool
) -> None:
    def follower() -> MirrorFollower:
        return MirrorFollower(anywhere, DirectoryTranscriptMirror(tmp_path))

    running = follower()

    async def mirrored() -> bytes:
        await (follower() if restarts else running).catch_up()
        [content] = read_files(tmp_path).values()
        return content

    await append_texts(anywhere, owner, "chat", "keep", "secret words")
    assert b"secret words" in await mirrored()

    await removals.pop(anywhere, owner, "kate", "chat")
    assert await mirrored() == await export(anywhere, owner, "chat")

    await append_texts(anywhere, owner, "chat", "another one")
    content = await mirrored()
    assert content == await export(anywhere, owner, "chat")
    assert b"secret words" not in content

    await removals.pop(anywhere, owner, "kate", "chat")
    await append_texts(anywhere, owner, "chat", "of equal count")
    assert await mirrored() == await export(anywhere, owner, "chat")

    await removals.clear(anywhere, owner, "kate", "chat")
    await append_texts(anywhere, owner, "chat")
    assert (await mirrored()).count(b"\n") == 1
    await append_texts(anywhere, owner, "chat", "anew")
    assert await mirrored() == await export(anywhere, owner, "chat")
