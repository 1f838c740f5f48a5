"""Deleting a session, an agent or a person leaves none of its text in any file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path as File

import pytest
from tests.actions.searchable_store import (
    INLINE_BYTES,
    STORES,
    SearchableStore,
    find_text_in_files,
    open_searchable_store,
)
from tests.support.full_app import FullApp, create_rest_app
from tests.support.stores import DATABASE
from tests.support.tenants import add_person, create_tenant

from carrel.actions import items
from carrel.actions.accounts import audit, people
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.agents.erasure import erase_orphans
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.files import files
from carrel.actions.files import history as file_history
from carrel.actions.files.version_redaction import MARKER, redact_version
from carrel.actions.git import checkpoints, history
from carrel.actions.memory import dreams, memories
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
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, Run
from carrel.core.sessions.session import Session
from carrel.core.store.record import deletion
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

SECRET, OTHER = "zanzibarquince", "ordinarytext"
SESSION = "5f0c8a52-2f5e-4d3c-9f10-00000000000{}"
USER = Path("USER.md")
EASY = {"minScore": 0, "minRecallCount": 1, "minUniqueQueries": 1, "minUniqueDays": 1}
CONFIG = {"transcriptsDir": "cook", "workspaceGit": {"enabled": True}, "dreaming": EASY}


@pytest.fixture(params=STORES)
async def erased(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[SearchableStore]:
    async with open_searchable_store(request, tmp_path) as store:
        yield store


def count_repositories(directory: File) -> int:
    return len(list(directory.glob("git/*/*.git")))


async def add_sessions(ports: Ports, owner: Actor, agent: str, id: str, text: str) -> None:
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
        large = f"{text} {n} large ".encode() * INLINE_BYTES
        await files.put(ports, stack, Path("notes/large.md"), large, owner)
    for n in range(3):
        await memories.remember(ports, owner, agent, NewMemory(f"{text} is fact {n}"))
        await memories.recall(ports, owner, agent, f"{text} fact {n}")
    await dreams.sweep(ports, owner, agent)
    await items.put(ports, owner, agent, "list", text)
    await checkpoints.create_checkpoint(ports, owner, stack[0], text)
    run = await runs.start(ports, owner, RunRequest(text, agent=agent, variables={"topic": text}))
    await add_sessions(ports, owner, agent, SESSION.format(len(agent)), text)
    await call_tools(ports, owner, stack[0].name, SESSION.format(len(agent)), text, run)


async def call_tools(
    ports: Ports, owner: Actor, agent: str, session: str, text: str, run: Run
) -> None:
    """Leave a text in an answered and in an open approval."""
    for n in range(2):
        request = ApprovalRequest(
            agent=agent,
            tool="bash",
            arguments={"command": f"{text} {n}"},
            mode=Audience.MAIN,
            session=session,
            run=run.id,
            call=f"call-{n}",
        )
        approval = await approvals.request_approval(ports, owner, request)
    await approvals.answer(ports, owner, approval.id, False, f"never {text}")


async def append_once(
    erased: SearchableStore, token: str, agent: str, session: str, text: str
) -> None:
    """Leave a text in the response stored for an idempotency key."""
    url = f"/v1/agents/{agent}/sessions/{session}/entries"
    async with FullApp(erased.ports, create_rest_app(erased.ports)).as_(token) as client:
        headers, body = {"Idempotency-Key": agent}, {"role": "user", "content": text}
        response = await client.post(url, json=body, headers=headers)
        assert response.status_code == 201, response.text


async def request_once(erased: SearchableStore, token: str, agent: str, text: str) -> None:
    """Leave a text in the responses stored for idempotency keys."""
    url = f"/v1/agents/{agent}"
    async with FullApp(erased.ports, create_rest_app(erased.ports)).as_(token) as client:
        requests: list[tuple[str, str, dict[str, str]]] = [
            ("PUT", f"{url}/files/notes/{agent}.md", {"content": text}),
            ("POST", f"{url}/memories", {"content": f"{text} again"}),
            ("PUT", f"{url}/items/key", {"value": text}),
            ("POST", "/v1/runs", {"agentId": agent, "workflowId": text}),
        ]
        for method, path, body in requests:
            headers = {"Idempotency-Key": f"{path}-{agent}"}
            response = await client.request(method, path, json=body, headers=headers)
            assert response.status_code < 300, response.text


async def read_run_file(ports: Ports, run: Run, path: Path) -> bytes:
    return files.render_content(*(await snapshots.read_file(ports, run, path)))


async def test_a_deleted_session_leaves_no_text_in_rows_index_log_or_files(
    erased: SearchableStore,
) -> None:
    tenant, owner = await create_tenant(erased.ports)
    ports = erased.ports
    agent = await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    await add_sessions(ports, owner, "cook", SESSION.format(1), SECRET)
    await add_sessions(ports, owner, "cook", SESSION.format(2), OTHER)
    run = await runs.start(ports, owner, RunRequest(agent="cook"))
    await call_tools(ports, owner, agent.id, SESSION.format(1), SECRET, run)
    await append_once(erased, tenant.token, "cook", SESSION.format(1), SECRET)
    await mirror(ports)
    assert f"transcripts/cook/{SESSION.format(1)}.jsonl" in await erased.find_text(SECRET)
    await delete_session(ports, owner, "cook", SESSION.format(1))
    assert await erased.find_text(SECRET) == []
    assert len(await sessions.search(ports, owner, "cook", OTHER, limit=100)) == 60
    assert f"transcripts/cook/{SESSION.format(2)}.jsonl" in await erased.find_text(OTHER)
    [read, entry, *_] = (await audit.list_audit_entries(ports, owner)).items
    assert (read.reason, entry.reason) == (
        "read transcripts of a private agent",
        "delete a session",
    )
    assert entry.subjects[-2] == f"session/{SESSION.format(1)}"
    with pytest.raises(NotFound):
        await delete_session(ports, owner, "cook", SESSION.format(1))
    assert await erased.find_problems() == []


async def test_responses_of_a_deleted_session_with_any_id_are_deleted_and_no_others(
    erased: SearchableStore,
) -> None:
    tenant, owner = await create_tenant(erased.ports)
    await agents.create(erased.ports, owner, NewAgent("cook", "Cook"))
    own = f'Main \u00e9 "{SECRET}" / 1'
    async with FullApp(erased.ports, create_rest_app(erased.ports)).as_(tenant.token) as client:
        url = "/v1/agents/cook"

        async def post(path: str, key: str, body: Mapping[str, object]) -> bool:
            """Send a request and return whether its answer was a stored one."""
            headers = {"Idempotency-Key": key}
            response = await client.post(path, json=body, headers=headers)
            assert response.status_code < 300, response.text
            return "openwop-idempotent-replay" in response.headers

        for id in ("1", "main", own):
            await post(f"{url}/sessions", f"start-{len(id)}", {"id": id})
        read = {"action": "recent", "session_id": own}
        call = {"arguments": read, "sessionId": own, "callId": "call-1"}
        await post(f"{url}/tools/session_logs", "read", call)
        others: list[tuple[str, str, Mapping[str, object]]] = [
            (f"{url}/memories", "memory-1", {"content": "fact 1 of main"}),
            ("/v1/runs", "run-1", {"agentId": "cook", "scope": "main"}),
        ]
        for request in others:
            assert not await post(*request)
        for id in ("1", "main", own):
            await delete_session(erased.ports, owner, "cook", id)
        for request in others:
            assert await post(*request)
    assert "idempotency_key" not in await erased.find_text(SECRET)


async def test_a_deleted_agent_leaves_no_text_in_any_file_and_others_keep_theirs(
    erased: SearchableStore,
) -> None:
    tenant, owner = await create_tenant(erased.ports)
    ports = erased.ports
    for slug, text in (("cook", SECRET), ("baker", OTHER)):
        config = CONFIG | {"transcriptsDir": slug}
        await agents.create(ports, owner, NewAgent(slug, slug, is_shared=True, config=config))
        await live(ports, owner, slug, text)
        await request_once(erased, tenant.token, slug, text)
        await append_once(erased, tenant.token, slug, SESSION.format(4 + (slug == "baker")), text)
        await history.refresh(ports, owner, slug)
    await mirror(ports)
    places = set(await erased.find_text(SECRET))
    assert places >= {"content", "record", "recall", "run", "session_entry", "idempotency_key"}
    others = {place for place in await erased.find_text(OTHER) if not place.startswith(DATABASE)}
    async with FullApp(ports, create_rest_app(ports)).as_(tenant.token) as client:
        for _ in range(2):
            headers = {"Idempotency-Key": "delete"}
            assert (await client.delete("/v1/agents/cook", headers=headers)).status_code == 204
    await erased.collect_garbage()
    assert await erased.find_text(SECRET) == []
    assert others <= set(await erased.find_text(OTHER))
    assert count_repositories(erased.directory) == 1
    assert len(await sessions.search(ports, owner, "baker", OTHER, limit=100)) == 61
    assert (await history.refresh(ports, owner, "baker")).commits_added == 0
    assert await erased.find_problems() == []


async def test_what_an_interrupted_deletion_of_an_agent_left_is_erased_later(
    anywhere: Ports,
) -> None:
    ports, (_, owner) = anywhere, await create_tenant(anywhere)
    agent = await agents.create(ports, owner, NewAgent("cook", "Cook"))
    await add_sessions(ports, owner, "cook", SESSION.format(1), SECRET)
    await commit_changes(ports, owner, "delete an agent", [deletion(agent)])
    assert await erase_orphans(ports) == 1
    assert await ports.sessions.count(owner.tenant, [agent.id]) == (0,)
    assert await erase_orphans(ports) == 0


async def test_a_deleted_person_leaves_none_of_their_private_items(erased: SearchableStore) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    person, _ = await add_person(ports, owner, "luis")
    await agents.create(ports, owner, NewAgent("cook", "Cook", owner=person.id))
    await items.put(ports, owner, "cook", "list", SECRET)
    await people.delete(ports, owner, person.id)
    assert await erased.find_text(SECRET) == []
    assert await erased.find_problems() == []


async def test_a_deleted_person_is_erased_from_old_user_files_runs_and_git(
    erased: SearchableStore,
) -> None:
    tenant, owner = await create_tenant(erased.ports)
    ports = erased.ports
    person, _ = await add_person(ports, owner, "luis")
    defaults = await stacks.defaults_stack(ports, owner)
    await files.put(ports, defaults, USER, b"{{HUMAN_NAME}} {{HUMAN_EMAIL}}", owner)
    for slug in ("cook", "baker"):
        new = NewAgent(slug, slug, human=person.id, config={"workspaceGit": {"enabled": True}})
        await agents.create(ports, owner, new)
        await history.refresh(ports, owner, slug)
    async with FullApp(ports, create_rest_app(ports)).as_(tenant.token) as client:
        body, headers = {"name": SECRET, "email": f"{SECRET}@x.example"}, {"Idempotency-Key": "1"}
        patched = await client.patch(f"/v1/people/{person.id}", json=body, headers=headers)
        assert patched.status_code == 200, patched.text
    run = await runs.start(ports, owner, RunRequest(agent="cook"))
    assert SECRET.encode() in (await snapshots.read_file(ports, run, USER))[1]
    await agents.patch(ports, owner, "baker", {"human_pair_id": None})
    await people.delete(ports, owner, person.id)
    assert await erased.find_text(SECRET) == []
    frozen = await runs.get(ports, owner, run.id)
    assert await read_run_file(ports, frozen, USER) == "— —".encode()
    for slug in ("cook", "baker"):
        stack = await stacks.agent_stack(ports, owner, slug)
        versions = (await file_history.list_versions(ports, stack, USER)).items
        own = [version.row for version in versions if version.layer == stack[0]]
        assert own[0].redacted is False
        assert any(row.redacted for row in own[1:])
        await history.refresh(ports, owner, slug)
    assert await erased.find_text(SECRET) == []
    assert await erased.find_problems() == []


async def test_a_deleted_person_is_erased_under_earlier_names_too(
    erased: SearchableStore,
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    person, _ = await add_person(ports, owner, SECRET)
    defaults = await stacks.defaults_stack(ports, owner)
    await files.put(ports, defaults, USER, b"{{HUMAN_NAME}} {{HUMAN_EMAIL}}", owner)
    for slug in ("cook", "baker"):
        new = NewAgent(slug, slug, human=person.id, config={"workspaceGit": {"enabled": True}})
        await agents.create(ports, owner, new)
        await history.refresh(ports, owner, slug)
        await runs.start(ports, owner, RunRequest(agent=slug))
    await agents.patch(ports, owner, "baker", {"human_pair_id": None})
    for fields in ({"name": "Luis"}, {"email": "luis@x.example"}, {"name": "Luis Two"}):
        await people.patch(ports, owner, person.id, fields)
    await people.delete(ports, owner, person.id)
    assert await erased.find_text(SECRET) == []
    assert await erased.find_problems() == []


async def test_a_redacted_version_keeps_its_number_and_loses_its_content(
    erased: SearchableStore,
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)
    await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    stack, path = await stacks.agent_stack(ports, owner, "cook"), Path("notes/a.md")
    for text in (f"one {SECRET}", "two", f"three {SECRET}"):
        await files.put(ports, stack, path, text.encode(), owner)
    run = await runs.start(ports, owner, RunRequest(agent="cook"))
    await history.refresh(ports, owner, "cook")
    for number in (1, 3, 3):
        await redact_version(ports, owner, stack, path, number)
    assert await erased.find_text(SECRET) == []
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
    assert await erased.find_problems() == []


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
    await add_sessions(ports, owner, "cook", SESSION.format(1), SECRET)
    with pytest.raises(Forbidden):
        await delete_session(ports, member, "cook", SESSION.format(1))


async def test_a_file_written_while_its_session_is_deleted_is_deleted_too(
    erased: SearchableStore,
) -> None:
    ports, (_, owner) = erased.ports, await create_tenant(erased.ports)

    class SlowMirror(DirectoryTranscriptMirror):
        """Mirror whose session is deleted between the read and the write of its entries."""

        async def append(
            self, folder: str, session: Session, after: int, lines: bytes, count: int
        ) -> None:
            await ports.sessions.delete([session])
            await super().append(folder, session, after, lines, count)

    await agents.create(ports, owner, NewAgent("cook", "Cook", config=CONFIG))
    await add_sessions(ports, owner, "cook", SESSION.format(1), SECRET)
    await MirrorFollower(ports, SlowMirror(erased.directory / "transcripts")).catch_up()
    assert find_text_in_files(erased.directory / "transcripts", SECRET) == []
