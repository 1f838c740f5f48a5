"""An agent's `transcriptsDir` is checked when it is set."""

from __future__ import annotations

import dataclasses
from pathlib import Path as File

import pytest
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant

from carrel.actions.accounts import tenants
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.core.errors import Conflict, ValidationError
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "folder", ["/etc/carrel", "file", "file/below", "loop/x", "x" * 256, "x/" * 2000]
)
async def test_an_unusable_transcripts_directory_is_refused_when_set(
    tmp_path: File, folder: str
) -> None:
    root = tmp_path / "transcripts"
    root.mkdir()
    (root / "file").write_text("x")
    (root / "loop").symlink_to(root / "loop")
    async with open_ports(tmp_path / "store") as opened:
        ports = dataclasses.replace(opened, transcript_files=DirectoryTranscriptMirror(root))
        created = await tenants.create(ports, "acme", "Acme", "Ada", "ada@acme.example")
        ada = await authenticate(ports, created.token)
        usable = {"transcriptsDir": "chats/kate"}
        await agents.create(ports, ada, NewAgent("kate", "Kate", config=usable))
        assert not (root / "chats").exists()
        unusable = {"transcriptsDir": folder}
        with pytest.raises(ValidationError, match="transcriptsDir"):
            await agents.patch(ports, ada, "kate", {"config": unusable})
        with pytest.raises(ValidationError, match="transcriptsDir"):
            await agents.create(ports, ada, NewAgent("luis", "Luis", config=unusable))


async def test_a_directory_in_which_no_file_name_fits_is_refused_when_set(tmp_path: File) -> None:
    mirror = DirectoryTranscriptMirror(tmp_path)
    folder = "/".join(["x" * 99] * 39)[: 4000 - len(f"{tmp_path}/")]
    await mirror.check(folder[:3700])
    with pytest.raises(ValidationError, match="transcriptsDir"):
        await mirror.check(folder)


async def test_a_transcripts_directory_of_another_agent_is_refused_when_set(
    tmp_path: File, anywhere: Ports
) -> None:
    mirror = DirectoryTranscriptMirror(tmp_path / "transcripts")
    ports = dataclasses.replace(anywhere, transcript_files=mirror)
    (_, owner), (_, stranger) = await create_tenant(ports), await create_tenant(ports, "globex")
    await agents.create(ports, owner, NewAgent("kate", "Kate", config={"transcriptsDir": "chats"}))
    same = {"transcriptsDir": "./chats/"}
    for actor in (owner, stranger):
        await agents.create(ports, actor, NewAgent("luis", "Luis"))
        with pytest.raises(Conflict, match="used by another agent"):
            await agents.patch(ports, actor, "luis", {"config": same})
    await agents.patch(ports, owner, "kate", {"config": same})
    await agents.delete(ports, owner, "kate")
    await agents.patch(ports, stranger, "luis", {"config": same})
