"""Purging a text leaves it in no row, index, log, file, object or repository."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path as File

import pytest
from tests.actions.searchable_store import (
    STORES,
    SearchableStore,
    find_text_in_files,
    open_searchable_store,
)
from tests.support.full_app import FullApp, create_rest_app
from tests.support.local_providers import LOCAL
from tests.support.stores import ports_over
from tests.support.tenants import add_person, create_tenant

from carrel.actions import items
from carrel.actions.accounts import audit
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.files import files
from carrel.actions.files import history as file_history
from carrel.actions.files.file_writer import WriteOptions
from carrel.actions.git import history
from carrel.actions.maintenance.purge import PurgeRequest, PurgeStep, purge_text
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.transcript_mirror import MirrorFollower
from carrel.adapters.sqlite import open_store as open_sqlite
from carrel.core.access import Actor
from carrel.core.approvals import ApprovalStatus
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.identifiers import Path
from carrel.core.redaction.text_purge import MARKER
from carrel.core.runs import Audience, RunStatus
from carrel.ports import Ports
from carrel.ports.sandbox import CommandSpec, FileKind, InputFile, ResourceLimits

pytestmark = pytest.mark.anyio

SECRET = 'zanzibarquince"\u00e9'
WORD = "zanzibarquince"
SESSION = "5f0c8a52-2f5e-4d3c-9f10-000000000001"
CONFIG = {"transcriptsDir": "cook", "workspaceGit": {"enabled": True}}
NOTE, LARGE = Path("notes/a.md"), Path("notes/large.md")


@pytest.fixture(params=STORES)
async def purged(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[SearchableStore]:
    async with open_searchable_store(request, tmp_path) as store:
        yield store


async def live(ports: Ports, owner: Actor) -> str:
    """Leave a text everywhere an agent can; return the id of a run."""
    await agents.create(ports, owner, NewAgent("cook", f"Cook {SECRET}", config=CONFIG))
    stack = await stacks.agent_stack(ports, owner, "cook")
    for text in (f"one {SECRET}", f"two {SECRET} {SECRET}", "three"):
        await files.put(ports, stack, NOTE, text.encode(), owner)
    await files.put(ports, stack, LARGE, (SECRET + " large " * 2000).encode(), owner)
    await files.put(ports, stack, Path(f"notes/{WORD}.md"), json.dumps(SECRET).encode(), owner)
    typed = Path("notes/typed")
    for content, type in ((b"1", f"text/x-{WORD}"), (b"2", "text/plain"), (b"3", f"text/x-{WORD}")):
        options = WriteOptions(type=type)
        await files.put(ports, stack, typed, content, owner, options)
    run = await runs.start(ports, owner, RunRequest(agent="cook", variables={"topic": SECRET}))
    failed = await runs.start(ports, owner, RunRequest(agent="cook"))
    reason = f"no answer about {SECRET}"
    await runs.update(ports, owner, failed.id, status=RunStatus.FAILED, reason=reason)
    await memories.remember(ports, owner, "cook", NewMemory(f"{SECRET} is a fact"))
    await memories.recall(ports, owner, "cook", f"{SECRET} fact")
    await items.put(ports, owner, "cook", "list", SECRET)
    await sessions.start(ports, owner, "cook", id=SESSION)
    entries = [NewEntry("user", f"{SECRET} and word{n}") for n in range(60)]
    await sessions.append(ports, owner, "cook", SESSION, entries)
    assert ports.transcript_files is not None
    await MirrorFollower(ports, ports.transcript_files).catch_up()
    await history.refresh(ports, owner, "cook")
    return run.id


async def request_approval(ports: Ports, owner: Actor, text: str) -> str:
    """Let a call with a text wait for an approval; return its id."""
    agent = (await agents.get(ports, owner, "cook")).id
    arguments = {"command": f"echo {text}"}
    request = ApprovalRequest(agent=agent, tool="bash", arguments=arguments, mode=Audience.MAIN)
    return (await approvals.request_approval(ports, owner, request)).id


async def purge_all(ports: Ports, owner: Actor, text: str, *, dry_run: bool = False) -> PurgeStep:
    step = await purge_text(ports, owner, PurgeRequest(text, dry_run))
    while step.cursor:
        step = await purge_text(ports, owner, PurgeRequest(text, dry_run, step.cursor))
    return step


async def test_a_purged_text_is_in_no_row_index_log_file_object_or_repository(
    purged: SearchableStore,
) -> None:
    tenant, owner = await create_tenant(purged.ports)
    ports = purged.ports
    run = await live(ports, owner)
    async with FullApp(ports, create_rest_app(ports)).as_(tenant.token) as client:
        url, headers = "/v1/agents/cook/files/notes/b.md", {"Idempotency-Key": "1"}
        put = await client.put(url, json={"content": f"{SECRET} again"}, headers=headers)
        assert put.status_code == 200, put.text
    call = await request_approval(ports, owner, SECRET)
    before = await purged.find_text(WORD)
    assert len(before) >= 10
    assert "idempotency_key" in before
    expected = (await purge_all(ports, owner, SECRET, dry_run=True)).counts
    assert await purged.find_text(WORD) == before
    counts = (await purge_all(ports, owner, SECRET)).counts
    assert {kind: counts[kind] for kind in expected if kind != "audit"} == {
        kind: count for kind, count in expected.items() if kind != "audit"
    }
    await purge_all(ports, owner, WORD)
    assert await purged.find_text(WORD) == []
    assert await purged.find_problems() == []
    stack = await stacks.agent_stack(ports, owner, "cook")
    [third, second, first] = (await file_history.list_versions(ports, stack, NOTE)).items
    assert (await files.read_version(ports, stack, NOTE, first.number))[1] == (
        f"one {MARKER}".encode()
    )
    assert (await files.read_version(ports, stack, NOTE, second.number))[1] == (
        f"two {MARKER} {MARKER}".encode()
    )
    assert (await files.read_version(ports, stack, NOTE, third.number))[1] == b"three"
    assert (await approvals.get(ports, owner, call)).status is ApprovalStatus.CANCELLED
    frozen = await runs.get(ports, owner, run)
    assert (await snapshots.read_file(ports, frozen, LARGE))[1].startswith(MARKER.encode())
    assert len(await sessions.search(ports, owner, "cook", "purged", limit=100)) == 60
    assert (await history.refresh(ports, owner, "cook")).commits_added > 0
    assert await purged.find_text(WORD) == []
    assert await purged.find_problems() == []


async def test_a_purged_text_is_in_nothing_that_was_derived_from_a_memory(
    purged: SearchableStore,
) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    await agents.create(ports, owner, NewAgent("cook", "Cook"))
    text = "ZanziBar99Quince"
    for content in (f"the code is {text} now", f"the code is {MARKER} now"):
        await memories.remember(ports, owner, "cook", NewMemory(content))
    await memories.recall(ports, owner, "cook", "the code")

    await purge_all(ports, owner, text)

    assert await purged.find_text(text.lower()) == []
    assert len((await memories.list_memories(ports, owner, "cook")).items) == 2
    again = await memories.remember(ports, owner, "cook", NewMemory(f"the code is {text} now"))
    assert again.created
    assert await purged.find_problems() == []


async def test_a_session_whose_id_has_the_text_gets_another_everywhere(
    purged: SearchableStore,
) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    assert ports.transcript_files is not None
    agent = (await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))).id
    named, plain = f"chat with {SECRET}", "plain"
    await sessions.start(ports, owner, "cook", id=named)
    await sessions.start(ports, owner, "cook", id=plain, plugin=SECRET)
    for id in (named, plain):
        await sessions.append(ports, owner, "cook", id, [NewEntry("user", "hello")])
    run = await runs.start(ports, owner, RunRequest(agent="cook", session=named))
    requested_call = ApprovalRequest(
        agent=agent, tool="bash", arguments={}, mode=Audience.MAIN, session=named
    )
    call = (await approvals.request_approval(ports, owner, requested_call)).id
    follower = MirrorFollower(ports, ports.transcript_files)
    await follower.catch_up()
    expected = (await purge_all(ports, owner, SECRET, dry_run=True)).counts

    assert (await purge_all(ports, owner, SECRET)).counts["session"] == expected["session"] == 2

    await follower.catch_up()
    assert await purged.find_text(WORD) == []
    assert await purged.find_problems() == []
    listed = {session.id for session in (await sessions.list_sessions(ports, owner, "cook")).items}
    [new_id] = listed - {plain}
    _, entries = await sessions.list_entries(ports, owner, "cook", new_id)
    assert [entry.content for entry in entries] == ["hello"]
    assert (await runs.get(ports, owner, run.id)).session == new_id
    assert (await approvals.get(ports, owner, call)).session == new_id
    assert len(await sessions.search(ports, owner, "cook", "hello", limit=9)) == 2


async def test_a_purged_text_is_in_no_file_that_a_command_was_given(
    purged: SearchableStore,
) -> None:
    async with LOCAL["bubblewrap-overlay"](purged.directory) as sandbox:
        ports = replace(purged.ports, sandboxes={"local": sandbox})
        _, owner = await create_tenant(ports)
        stack = await stacks.default_stack(ports, owner)
        await files.put(ports, stack, NOTE, SECRET.encode(), owner)
        file = await files.get_file(ports, stack, NOTE)
        input_files = {NOTE: InputFile(FileKind.FILE, file.entry.blob)}
        command = CommandSpec("purged", "cat notes/a.md", input_files, ResourceLimits(seconds=20))
        async with sandbox.run(command, ports.blobs) as result:
            assert result.stdout == SECRET.encode()
        assert any(place.startswith("sandboxes/") for place in await purged.find_text(WORD))

        await purge_all(ports, owner, SECRET)

        assert await purged.find_text(WORD) == []


async def test_bytes_that_sqlite_left_in_its_pages_are_purged_too(tmp_path: File) -> None:
    """SQLite moves rows between pages, and leaves copies that later deletions do not overwrite."""
    file = tmp_path / "carrel.db"
    async with open_sqlite(file) as store:
        ports = ports_over(store, directory=tmp_path)
        _, owner = await create_tenant(ports)
        stack = await stacks.default_stack(ports, owner)
        await files.put(ports, stack, NOTE, b"stays", owner)
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA secure_delete = OFF")
            db.execute("INSERT INTO counter VALUES (?, 1)", (SECRET,))
            db.commit()
            db.execute("DELETE FROM counter WHERE name = ?", (SECRET,))
            db.commit()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert find_text_in_files(tmp_path, WORD) == ["carrel.db"]

        await purge_all(ports, owner, SECRET)

        assert find_text_in_files(tmp_path, WORD) == []
        current = await files.get_file(ports, stack, NOTE)
        assert await files.read_content(ports, current) == b"stays"
        await files.put(ports, stack, NOTE, b"after", owner)


async def test_the_audit_of_a_purge_names_the_person_and_counts(purged: SearchableStore) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    await live(ports, owner)
    await purge_all(ports, owner, SECRET)
    entries = (await audit.list_audit_entries(ports, owner)).items
    assert entries[0].author == owner.name
    assert entries[0].reason.startswith("purge a text: ")
    assert "60 session_entry" in entries[0].reason
    assert "purge a text" in {entry.reason for entry in entries[1:]}


async def test_another_tenant_keeps_the_text(purged: SearchableStore) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    _, other = await create_tenant(ports, "other")
    for actor in (owner, other):
        workspace = await stacks.default_stack(ports, actor)
        await files.put(ports, workspace, LARGE, (SECRET + " large " * 2000).encode(), actor)
    await purge_all(ports, owner, SECRET)
    others = await files.get_file(ports, await stacks.default_stack(ports, other), LARGE)
    assert (await files.read_content(ports, others)).startswith(SECRET.encode())
    own = await files.get_file(ports, await stacks.default_stack(ports, owner), LARGE)
    assert (await files.read_content(ports, own)).startswith(MARKER.encode())
    assert await purged.find_problems() == []


async def test_only_owners_purge_and_unsuitable_texts_are_refused(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "luis")
    with pytest.raises(Forbidden):
        await purge_text(ports, member, PurgeRequest(SECRET))
    for text in ("short", "agt_" + "0" * 24, "workspace", "maxVersions", "REDACTED", " " * 9):
        with pytest.raises(ValidationError):
            await purge_text(ports, owner, PurgeRequest(text))
    with pytest.raises(ValidationError):
        await purge_text(ports, owner, PurgeRequest(SECRET, cursor="nonsense"))
