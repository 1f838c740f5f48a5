"""What agents reach through records: found in few questions, sealed, bounded, gone when deleted."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from tests.support.tenants import create_tenant, race, start_after_yields

from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.runs import RunRequest
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.adapters.http_webhooks import HttpWebhookSender
from carrel.core.access import Actor
from carrel.core.agents.config import parse_config
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.tool_access import NO_ACCESS, PermissionMode, ToolAccess
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import Commit
from carrel.ports import CorruptContent, Ports
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    FetchContents,
    ResourceLimits,
    SandboxUnavailable,
)

pytestmark = pytest.mark.anyio
CANARY = "canary-4711"


@pytest.fixture
async def owner(ports: Ports) -> Actor:
    return (await create_tenant(ports))[1]


async def sandbox(ports: Ports, owner: Actor, **config: Any) -> Record:
    return await sandboxes.create(ports, owner, {"name": "one", "config": config})


async def workspace(ports: Ports, owner: Actor, **said: Any) -> Record:
    return await workspaces.create(ports, owner, {"name": "notes", **said})


async def reached(ports: Ports, owner: Actor, **config: Any) -> ToolAccess:
    return await load_tool_access(ports, owner.tenant, parse_config(config))


async def test_an_agent_reaches_what_its_config_refers_to(ports: Ports, owner: Actor) -> None:
    one, two = await sandbox(ports, owner), await sandbox(ports, owner, permissionMode="bypass")
    notes = await workspace(ports, owner, description="for all")
    quiet = await workspace(ports, owner, config={"harness": {"enabled": False}})
    attached = [
        {"name": "notes", "workspaceId": notes.id},
        {"name": "other", "workspaceId": notes.id, "sandbox": two.id},
        {"name": "docs", "workspaceId": quiet.id, "sandbox": None},
    ]
    found = await reached(ports, owner, sandbox=one.id, workspaces=attached)
    assert found.sandbox is not None
    assert (found.sandbox.id, found.sandbox.mode) == (one.id, PermissionMode.ASK)
    through = [reach.sandbox and reach.sandbox.id for reach in found.workspaces]
    assert through == [one.id, two.id, None]
    assert [reach.notes_enabled for reach in found.workspaces] == [True, True, False]
    assert [reach.description for reach in found.workspaces] == ["for all", "for all", ""]
    assert await reached(ports, owner) == NO_ACCESS


async def test_what_is_gone_is_named(ports: Ports, owner: Actor) -> None:
    one, notes = await sandbox(ports, owner), await workspace(ports, owner)
    config = {"sandbox": one.id, "workspaces": [{"name": "n", "workspaceId": notes.id}]}
    await reached(ports, owner, **config)
    await sandboxes.delete(ports, owner, one.id)
    with pytest.raises(NotFound, match=rf"\AReferenced sandbox not found: {one.id}\Z"):
        await reached(ports, owner, **config)
    config["sandbox"] = (await sandbox(ports, owner)).id
    await workspaces.delete(ports, owner, notes.id)
    told = rf'\AReferenced workspace not found: {notes.id} \(as "n"\)\Z'
    with pytest.raises(NotFound, match=told):
        await reached(ports, owner, **config)
    with pytest.raises(NotFound, match="Referenced sandbox not found: no such thing"):
        await reached(ports, owner, sandbox="no such thing")


async def test_nothing_of_another_tenant_is_reached(ports: Ports, owner: Actor) -> None:
    one, notes = await sandbox(ports, owner), await workspace(ports, owner)
    _, stranger = await create_tenant(ports, "globex")
    with pytest.raises(NotFound, match="Referenced sandbox"):
        await reached(ports, stranger, sandbox=one.id)
    with pytest.raises(NotFound, match="Referenced workspace"):
        await reached(ports, stranger, workspaces=[{"name": "n", "workspaceId": notes.id}])


async def test_a_change_is_seen_at_the_next_call(ports: Ports, owner: Actor) -> None:
    one = await sandbox(ports, owner)
    assert (await reached(ports, owner, sandbox=one.id)).sandbox is not None
    await sandboxes.patch(ports, owner, one.id, {"config": {"permissionMode": "edit"}})
    found = (await reached(ports, owner, sandbox=one.id)).sandbox
    assert found is not None
    assert (found.mode, found.revision) == (PermissionMode.EDIT, 2)


class Questions:
    """A port that counts what it is asked."""

    def __init__(self, port: Any) -> None:
        self._port, self.asked = port, []

    asked: list[str]

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._port, name)

        async def counted(*args: Any, **more: Any) -> Any:
            self.asked.append(name)
            return await verb(*args, **more)

        return counted


async def test_however_much_is_attached_it_is_found_in_two_questions(
    ports: Ports, owner: Actor
) -> None:
    ids = [(await workspace(ports, owner)).id for _ in range(5)]
    through = [(await sandbox(ports, owner)).id for _ in range(5)]
    attached = [
        {"name": f"w{n}", "workspaceId": id, "sandbox": through[n]} for n, id in enumerate(ids)
    ]
    records = Questions(ports.records)
    counting = replace(ports, records=records)
    found = await reached(counting, owner, workspaces=attached)
    assert sorted(records.asked) == ["get", "get", "revision"]
    assert await reached(counting, owner, workspaces=attached) is found
    assert sorted(records.asked) == ["get", "get", "revision", "revision"]


async def test_variables_are_sealed_and_open_only_where_they_belong(
    ports: Ports, owner: Actor
) -> None:
    one = await sandbox(ports, owner, envVars={"TOKEN": CANARY, "EMPTY": ""})
    assert CANARY not in str(one.body)
    found = (await reached(ports, owner, sandbox=one.id)).sandbox
    assert found is not None
    assert sandboxes.decrypt_config(ports, found)["envVars"] == {"TOKEN": CANARY, "EMPTY": ""}
    bare = (await reached(ports, owner, sandbox=(await sandbox(ports, owner)).id)).sandbox
    assert bare is not None
    assert "envVars" not in sandboxes.decrypt_config(ports, bare)
    other = await sandbox(ports, owner)
    swapped = one.body["config"]["envVars"]
    for body, id in (
        ({"envVars": swapped}, other.id),
        ({"envVars": {"EMPTY": swapped["TOKEN"]}}, one.id),
    ):
        config = {**one.body["config"], **body}
        moved = RecordChange(owner.tenant, RecordType.SANDBOX, id, {"name": "x", "config": config})
        await ports.trees.commit([Commit((), "x", "x", 0, changes=(moved,))])
        stolen = (await reached(ports, owner, sandbox=id)).sandbox
        assert stolen is not None
        with pytest.raises(CorruptContent):
            sandboxes.decrypt_config(ports, stolen)


def test_bounds_are_those_of_the_config_and_never_silently_less() -> None:
    assert sandboxes.resource_limits({}) == ResourceLimits(30, 65_536, 1024, network=False)
    config = {"timeout": 600, "outputLimitBytes": 5, "memoryLimit": 64, "internet": True}
    assert sandboxes.resource_limits(config) == ResourceLimits(
        600, 5, 64, memory_limit_required=True, network=True
    )
    with pytest.raises(ValidationError, match=r"config.timeout must be an integer from 1 to 600"):
        sandboxes.resource_limits({"timeout": 601})
    with pytest.raises(ValidationError, match="from 1 to 300"):
        sandboxes.resource_limits({"provider": "lambda", "timeout": 301})


class Narrow:
    """A provider that runs little, or nothing at all."""

    tier = "narrow"

    def __init__(self, memory: int) -> None:
        self._memory = memory

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if persistent:
            return "it keeps nothing"
        return "too much memory" if limits.memory_mb > self._memory else None

    def run(
        self, spec: CommandSpec, fetch: FetchContents
    ) -> AbstractAsyncContextManager[CommandResult]:
        raise SandboxUnavailable("it runs nothing")


async def test_what_a_provider_cannot_enforce_is_refused_when_it_is_said(
    ports: Ports, owner: Actor
) -> None:
    narrow = replace(ports, sandboxes={"docker": Narrow(2048), "e2b": Narrow(0)})
    await sandbox(narrow, owner, provider="docker", memoryLimit=2048)
    with pytest.raises(
        ValidationError, match="cannot be enforced by provider docker: too much memory"
    ):
        await sandbox(narrow, owner, provider="docker", memoryLimit=2049)
    with pytest.raises(ValidationError, match="it keeps nothing"):
        await sandbox(narrow, owner, provider="docker", persistent=True)
    await sandbox(narrow, owner, provider="e2b", memoryLimit=64)  # it would refuse all the same
    await sandbox(narrow, owner, provider="daytona", memoryLimit=64)


async def test_no_address_in_it_leads_to_where_only_we_should_get(
    ports: Ports, owner: Actor
) -> None:
    careful = replace(ports, webhook_sender=HttpWebhookSender())
    for url in ("https://127.0.0.1/", "http://93.184.216.34/", "unix:///run/docker.sock"):
        with pytest.raises(ValidationError, match=r"config.options.nested.0.apiUrl is refused"):
            await sandbox(careful, owner, options={"nested": [{"apiUrl": url}]})
    await sandbox(careful, owner, options={"apiUrl": "https://93.184.216.34/"})


async def test_a_deleted_workspace_takes_its_files_along_in_one_commit(anywhere: Ports) -> None:
    _, owner = await create_tenant(anywhere)
    notes = await workspace(anywhere, owner)
    stack = await stacks.workspace_stack(anywhere, owner, notes.id)
    for n in range(12):
        await files.put(anywhere, stack, Path(f"{n}.md"), b"x", owner)
    trees = Questions(anywhere.trees)
    counting = replace(anywhere, trees=trees)
    await workspaces.delete(counting, owner, notes.id)
    assert trees.asked == ["read", "commit", "read"]
    [tree] = await anywhere.trees.read(stack)
    assert not tree.heads
    history = await anywhere.trees.history(stack[0], Path("3.md"))
    assert [version.head.entry is None for version in history] == [True, False]
    assert history[0].reason == "delete a workspace"
    [entry, *_] = await anywhere.records.audit(owner.tenant)
    assert (entry.reason, entry.subjects) == ("delete a workspace", (f"workspace/{notes.id}",))
    with pytest.raises(NotFound):
        await stacks.workspace_stack(anywhere, owner, notes.id)


async def test_a_run_in_a_workspace_sees_it_after_it_was_deleted(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    notes = await workspace(ports, owner)
    bound = replace(owner, workspace=notes.id)
    await files.put(ports, await stacks.default_stack(ports, bound), Path("a.md"), b"kept", bound)
    run = await runs.start(ports, bound, RunRequest("work"))
    await workspaces.delete(ports, owner, notes.id)
    assert (await snapshots.read_file(ports, run, Path("a.md")))[1] == b"kept"
    with pytest.raises(NotFound):
        await runs.start(ports, bound, RunRequest("work"))


async def test_no_file_outlives_its_workspace_however_late_it_comes(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    outcomes = set()
    for turn in range(40):
        notes = await workspace(ports, owner)
        stack = await stacks.workspace_stack(ports, owner, notes.id)
        writing = files.put(ports, stack, Path("a.md"), b"x", owner)
        going = start_after_yields(turn, workspaces.delete(ports, owner, notes.id))
        _, lost = await race(writing, going)
        assert all(isinstance(each, NotFound) for each in lost)
        outcomes.add(len(lost))
        [tree] = await ports.trees.read(stack)
        assert not tree.heads
    assert 0 in outcomes


async def test_a_deletion_that_meets_a_write_takes_that_along(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    for turn in range(40):
        notes = await workspace(ports, owner)
        stack = await stacks.workspace_stack(ports, owner, notes.id)
        writing = start_after_yields(turn, files.put(ports, stack, Path("a.md"), b"x", owner))
        _, lost = await race(workspaces.delete(ports, owner, notes.id), writing)
        assert all(isinstance(each, NotFound) for each in lost)
        [tree] = await ports.trees.read(stack)
        assert not tree.heads
