"""What an interrupted deletion left is erased by the next start of a server, and by `carrel gc`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path as File

import pytest
from tests.actions.searchable_store import (
    STORES,
    SearchableStore,
    find_text_in_files,
    open_searchable_store,
)
from tests.support.server_process import serving
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant
from tests.support.wait import wait_until_sync

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.agents.erasure import finish_erasures
from carrel.actions.records import iter_records
from carrel.actions.sessions import sessions
from carrel.actions.sessions.erasure import delete_session
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.transcript_mirror import MirrorFollower
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.core.access import Actor
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.tools.calls import open_tool_context, run_call

pytestmark = pytest.mark.anyio

SECRET = "zanzibarquince"


@pytest.fixture(params=STORES)
async def erased(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[SearchableStore]:
    async with open_searchable_store(request, tmp_path) as store:
        yield store


class StoppedError(BaseException):
    """End of the process."""


class StoppingFiles(DirectoryTranscriptMirror):
    """Directory at whose first deletion of a file the process ends."""

    async def delete(self, folder: str, owner: str, sessions: Sequence[str]) -> None:
        raise StoppedError


async def add_session(ports: Ports, owner: Actor, agent: str, id: str, text: str) -> None:
    await sessions.start(ports, owner, agent, id=id)
    await sessions.append(ports, owner, agent, id, [NewEntry("user", text)])


async def create_mirrored_agent(ports: Ports, owner: Actor, root: File) -> Ports:
    """Create an agent with a mirrored session; return ports that stop before files go."""
    await agents.create(ports, owner, NewAgent("cook", "Cook", config={"transcriptsDir": "cook"}))
    await add_session(ports, owner, "cook", "chat", SECRET)
    await MirrorFollower(ports, DirectoryTranscriptMirror(root)).catch_up()
    assert find_text_in_files(root, SECRET) == ["cook/chat.jsonl"]
    return replace(ports, transcript_files=StoppingFiles(root))


async def is_finished(ports: Ports) -> bool:
    return not [record async for record in iter_records(ports, "", RecordType.ERASURE)]


@pytest.mark.parametrize("deleted", ["session", "agent"])
async def test_a_deletion_that_stops_before_the_files_is_finished_later(
    erased: SearchableStore, deleted: str
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    stopping = await create_mirrored_agent(ports, owner, erased.directory / "transcripts")
    with pytest.raises(StoppedError):
        if deleted == "session":
            await delete_session(stopping, owner, "cook", "chat")
        else:
            await agents.delete(stopping, owner, "cook")
    assert not await is_finished(ports)

    assert await finish_erasures(ports) == 1
    assert await erased.find_text(SECRET) == []
    assert await is_finished(ports)
    assert await finish_erasures(ports) == 0


async def test_a_later_session_of_the_same_id_stays(erased: SearchableStore) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    stopping = await create_mirrored_agent(ports, owner, erased.directory / "transcripts")
    with pytest.raises(StoppedError):
        await delete_session(stopping, owner, "cook", "chat")
    await add_session(ports, owner, "cook", "chat", "another text")

    assert await finish_erasures(ports) == 1
    assert await erased.find_text(SECRET) == []
    assert (await sessions.get(ports, owner, "cook", "chat")).entry_count == 1


async def test_a_finished_deletion_leaves_no_record_of_what_to_erase(
    erased: SearchableStore,
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    await create_mirrored_agent(ports, owner, erased.directory / "transcripts")
    await delete_session(ports, owner, "cook", "chat")
    assert await is_finished(ports)
    await agents.delete(ports, owner, "cook")
    assert await is_finished(ports)


async def test_a_server_finishes_deletions_when_it_starts(tmp_path: File) -> None:
    transcripts = tmp_path / "transcripts"
    async with open_ports(tmp_path) as ports:
        _, owner = await create_tenant(ports)
        stopping = await create_mirrored_agent(ports, owner, transcripts)
        with pytest.raises(StoppedError):
            await delete_session(stopping, owner, "cook", "chat")
    assert find_text_in_files(transcripts, SECRET) == ["cook/chat.jsonl"]
    with serving(tmp_path):
        wait_until_sync(lambda: not find_text_in_files(transcripts, SECRET), "file deleted")


@pytest.mark.parametrize("deletes", [True, False])
async def test_results_of_calls_are_deleted_with_their_session_and_no_others(
    erased: SearchableStore, deletes: bool
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    for agent in ("cook", "baker"):
        await agents.create(ports, owner, NewAgent(agent, agent))
        await add_session(ports, owner, agent, "chat", "hello")
        await add_session(ports, owner, agent, "other", "hello")
    for agent, session in (("cook", "chat"), ("cook", "other"), ("baker", "chat")):
        context = await open_tool_context(ports, owner, agent, session=session)
        await run_call(context, "remember", {"content": f"tea of {session}"}, "call-1")
    if deletes:
        await delete_session(ports, owner, "cook", "chat")
    async with erased.store.maintenance.snapshot() as snapshot:
        stored = [row async for rows in snapshot.rows("idempotency_key") for row in rows]
    assert len(stored) == (2 if deletes else 3)
