"""Deleting a session, an agent or a person leaves none of its text in any file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as File

import pytest
from tests.support.tenants import add_person, create_tenant

from carrel.actions import items
from carrel.actions.accounts import audit, people
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.agents.erasure import erase_orphans
from carrel.actions.files import files
from carrel.actions.files import history as file_history
from carrel.actions.files.version_redaction import MARKER, redact_version
from carrel.actions.git import history
from carrel.actions.maintenance.integrity import check_store
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.overlay import stacks
from carrel.actions.records import commit_changes
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.erasure import delete_session
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.transcript_mirror import MirrorFollower
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.sqlite import open_store
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path
from carrel.core.runs import Run
from carrel.core.sessions import Session
from carrel.core.store.record import deletion
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

SECRET, OTHER = "zanzibarquince", "ordinarytext"
SESSION = "5f0c8a52-2f5e-4d3c-9f10-00000000000{}"
USER = Path("USER.md")
CONFIG = {"transcriptsDir": "cook", "workspaceGit": {"enabled": True}}


@pytest.fixture
def mirrored(ports: Ports, tmp_path: File) -> Ports:
    """Ports with transcript files."""
    return replace(ports, transcript_files=DirectoryTranscriptMirror(tmp_path / "transcripts"))


def find_text(directory: File, text: str) -> list[str]:
    """The files that contain a text in any letter case."""
    return [
        str(file.relative_to(directory))
        for file in sorted(directory.rglob("*"))
        if file.is_file() and text.encode() in file.read_bytes().lower()
    ]


def count_repositories(directory: File) -> int:
    return len(list(directory.glob("git/*/*.git")))


async def talk(ports: Ports, owner: Actor, agent: str, id: str, text: str) -> None:
    """Append 60 entries, each with words of its own."""
    await sessions.start(ports, owner, agent, id=id)
    entries = [NewEntry("user", f"{text} {text}{n} and word{n}") for n in range(60)]
    await sessions.append(ports, owner, agent, id, entries)


async def mirror(ports: Ports) -> None:
    assert ports.transcript_files is not None
    await MirrorFollower(ports, ports.transcript_files).catch_up()


async def live(ports: Ports, owner: Actor, agent: str, text: str) -> None:
    """Leave a text everywhere an agent can: files, memory, items, sessions and runs."""
    stack = await stacks.agent_stack(ports, owner, agent)
    for n in range(3):
        await files.put(ports, stack, Path("notes/a.md"), f"{text} {n}".encode(), owner)
    await memories.remember(ports, owner, agent, NewMemory(f"{text} is a fact"))
    await memories.recall(ports, owner, agent, f"{text} fact")
    await items.put(ports, owner, agent, "list", text)
    await runs.start(ports, replace(owner, agent=stack[0].name), RunRequest(text))
    await talk(ports, owner, agent, SESSION.format(len(agent)), text)


async def read_run_file(ports: Ports, run: Run, path: Path) -> bytes:
    return files.render_content(*(await snapshots.read_file(ports, run, path)))


async def errors(directory: File, ports: Ports) -> int:
    async with open_store(directory / "carrel.db") as store:
        findings = await check_store(store.maintenance, None, now=ports.clock.now(), grace=0)
    assert not findings.items, findings.items
    return findings.errors


async def test_a_deleted_session_leaves_no_text_in_rows_index_log_or_files(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)
    await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    await talk(ports, owner, "cook", SESSION.format(1), SECRET)
    await talk(ports, owner, "cook", SESSION.format(2), OTHER)
    await mirror(ports)
    assert f"transcripts/cook/{SESSION.format(1)}.jsonl" in find_text(tmp_path, SECRET)
    await delete_session(ports, owner, "cook", SESSION.format(1))
    assert find_text(tmp_path, SECRET) == []
    assert len(await sessions.search(ports, owner, "cook", OTHER, limit=100)) == 60
    assert f"transcripts/cook/{SESSION.format(2)}.jsonl" in find_text(tmp_path, OTHER)
    [read, entry, *_] = (await audit.list_audit_entries(ports, owner)).items
    assert (read.reason, entry.reason) == (
        "read transcripts of a private agent",
        "delete a session",
    )
    assert entry.subjects[-2] == f"session/{SESSION.format(1)}"
    with pytest.raises(NotFound):
        await delete_session(ports, owner, "cook", SESSION.format(1))
    assert await errors(tmp_path, ports) == 0


async def test_a_deleted_agent_leaves_no_text_in_any_file_and_others_keep_theirs(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)
    for slug, text in (("cook", SECRET), ("baker", OTHER)):
        config = CONFIG | {"transcriptsDir": slug}
        await agents.create(ports, owner, NewAgent(slug, slug, is_shared=True, config=config))
        await live(ports, owner, slug, text)
        await history.refresh(ports, owner, slug)
    await mirror(ports)
    await agents.delete(ports, owner, "cook")
    assert find_text(tmp_path, SECRET) == []
    assert count_repositories(tmp_path) == 1
    assert len(await sessions.search(ports, owner, "baker", OTHER, limit=100)) == 60
    assert (await history.refresh(ports, owner, "baker")).commits_added == 0
    assert await errors(tmp_path, ports) == 0


async def test_what_an_interrupted_deletion_of_an_agent_left_is_erased_later(
    anywhere: Ports,
) -> None:
    ports, (_, owner) = anywhere, await create_tenant(anywhere)
    agent = await agents.create(ports, owner, NewAgent("cook", "Cook"))
    await talk(ports, owner, "cook", SESSION.format(1), SECRET)
    await commit_changes(ports, owner, "delete an agent", [deletion(agent)])
    assert await erase_orphans(ports) == 1
    assert await ports.sessions.count(owner.tenant, [agent.id]) == (0,)
    assert await erase_orphans(ports) == 0


async def test_a_deleted_person_leaves_none_of_their_private_items(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)
    person, _ = await add_person(ports, owner, "luis")
    await agents.create(ports, owner, NewAgent("cook", "Cook", owner=person.id))
    await items.put(ports, owner, "cook", "list", SECRET)
    await people.delete(ports, owner, person.id)
    assert find_text(tmp_path, SECRET) == []
    assert await errors(tmp_path, ports) == 0


async def test_a_deleted_person_is_erased_from_old_user_files_runs_and_git(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)
    person, _ = await add_person(ports, owner, "luis")
    defaults = await stacks.defaults_stack(ports, owner)
    await files.put(ports, defaults, USER, b"{{HUMAN_NAME}} {{HUMAN_EMAIL}}", owner)
    for slug in ("cook", "baker"):
        new = NewAgent(slug, slug, human=person.id, config={"workspaceGit": {"enabled": True}})
        await agents.create(ports, owner, new)
        await history.refresh(ports, owner, slug)
    await people.patch(ports, owner, person.id, {"name": SECRET, "email": f"{SECRET}@x.example"})
    run = await runs.start(ports, owner, RunRequest(agent="cook"))
    assert SECRET.encode() in (await snapshots.read_file(ports, run, USER))[1]
    await agents.patch(ports, owner, "baker", {"human_pair_id": None})
    await people.delete(ports, owner, person.id)
    assert find_text(tmp_path, SECRET) == []
    frozen = await runs.get(ports, owner, run.id)
    assert await read_run_file(ports, frozen, USER) == "— —".encode()
    for slug in ("cook", "baker"):
        stack = await stacks.agent_stack(ports, owner, slug)
        versions = (await file_history.list_versions(ports, stack, USER)).items
        own = [version.row for version in versions if version.layer == stack[0]]
        assert own[0].redacted is False
        assert any(row.redacted for row in own[1:])
        await history.refresh(ports, owner, slug)
    assert find_text(tmp_path, SECRET) == []
    assert await errors(tmp_path, ports) == 0


async def test_a_redacted_version_keeps_its_number_and_loses_its_content(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)
    await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    stack, path = await stacks.agent_stack(ports, owner, "cook"), Path("notes/a.md")
    for text in (f"one {SECRET}", "two", f"three {SECRET}"):
        await files.put(ports, stack, path, text.encode(), owner)
    run = await runs.start(ports, owner, RunRequest(agent="cook"))
    await history.refresh(ports, owner, "cook")
    for number in (1, 3, 3):
        await redact_version(ports, owner, stack, path, number)
    assert find_text(tmp_path, SECRET) == []
    versions = (await file_history.list_versions(ports, stack, path)).items
    assert [version.number for version in versions] == [4, 3, 2, 1]
    assert [version.row.redacted for version in versions] == [False, True, False, True]
    assert {version.row.author for version in versions} == {owner.name}
    for number in (1, 3):
        with pytest.raises(NotFound, match="was redacted"):
            await files.read_version(ports, stack, path, number)
    current = await files.get_file(ports, stack, path)
    assert await files.read_content(ports, current) == MARKER
    assert (await files.read_version(ports, stack, path, 2))[1] == b"two"
    assert (await snapshots.read_file(ports, run, path))[1] == MARKER
    with pytest.raises(NotFound):
        await redact_version(ports, owner, stack, path, 9)
    [entry, *_] = (await audit.list_audit_entries(ports, owner)).items
    assert (entry.reason, entry.subjects[-1]) == ("redact a version", "version/3")
    assert await errors(tmp_path, ports) == 0


async def test_a_pin_of_a_redacted_version_keeps_its_content(anywhere: Ports) -> None:
    ports, (_, owner) = anywhere, await create_tenant(anywhere)
    defaults, path = await stacks.defaults_stack(ports, owner), Path("GUARDRAILS.md")
    await files.put(ports, defaults, path, b"be good", owner)
    await agents.create(ports, owner, NewAgent("cook", "Cook"))
    current = await files.get_file(ports, defaults, path)
    await redact_version(ports, owner, defaults, path, current.version)
    pinned = await files.get_file(ports, await stacks.agent_stack(ports, owner, "cook"), path)
    assert await files.read_content(ports, pinned) == b"be good"
    replaced = await files.get_file(ports, defaults, path)
    assert await files.read_content(ports, replaced) == MARKER
    with pytest.raises(NotFound, match="was redacted"):
        await files.read_version(ports, defaults, path, current.version)


async def test_only_admins_delete_sessions(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "luis")
    await agents.create(ports, owner, NewAgent("cook", "Cook"))
    await talk(ports, owner, "cook", SESSION.format(1), SECRET)
    with pytest.raises(Forbidden):
        await delete_session(ports, member, "cook", SESSION.format(1))


async def test_a_file_written_while_its_session_is_deleted_is_deleted_too(
    mirrored: Ports, tmp_path: File
) -> None:
    ports, (_, owner) = mirrored, await create_tenant(mirrored)

    class SlowMirror(DirectoryTranscriptMirror):
        """Mirror whose session is deleted between the read and the write of its entries."""

        async def append(
            self, folder: str, session: Session, after: int, lines: bytes, count: int
        ) -> None:
            await ports.sessions.delete([session])
            await super().append(folder, session, after, lines, count)

    await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    await talk(ports, owner, "cook", SESSION.format(1), SECRET)
    await MirrorFollower(ports, SlowMirror(tmp_path / "transcripts")).catch_up()
    assert find_text(tmp_path / "transcripts", SECRET) == []
