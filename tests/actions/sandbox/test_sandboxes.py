"""Sandboxes and workspaces of agents: access in few queries, sealed and limited."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from tests.support.tenants import create_tenant, race, start_after_yields

from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.adapters.webhook_transport import HttpWebhookSender
from carrel.core.access import Actor
from carrel.core.agents.config import parse_config
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.tool_access import NO_ACCESS, PermissionMode, ToolAccess
from carrel.core.store.commit import Commit
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import CorruptContent, Ports
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
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


async def workspace(ports: Ports, owner: Actor, **fields: Any) -> Record:
    return await workspaces.create(ports, owner, {"name": "notes", **fields})


async def load_access(ports: Ports, owner: Actor, **config: Any) -> ToolAccess:
    return await load_tool_access(ports, owner.tenant, parse_config(config))


async def test_an_agent_has_access_to_the_records_of_its_config(ports: Ports, owner: Actor) -> None:
    first, second = (
        await sandbox(ports, owner),
        await sandbox(ports, owner, permissionMode="bypass"),
    )
    notes = await workspace(ports, owner, description="for all")
    without_notes = await workspace(ports, owner, config={"harness": {"enabled": False}})
    attached = [
        {"name": "notes", "workspaceId": notes.id},
        {"name": "other", "workspaceId": notes.id, "sandbox": second.id},
        {"name": "docs", "workspaceId": without_notes.id, "sandbox": None},
    ]
    access = await load_access(ports, owner, sandbox=first.id, workspaces=attached)
    assert access.sandbox is not None
    assert (access.sandbox.id, access.sandbox.mode) == (first.id, PermissionMode.ASK)
    sandbox_ids = [
        attached_workspace.sandbox and attached_workspace.sandbox.id
        for attached_workspace in access.workspaces
    ]
    assert sandbox_ids == [first.id, second.id, None]
    assert [attached_workspace.notes_enabled for attached_workspace in access.workspaces] == [
        True,
        True,
        False,
    ]
    assert [attached_workspace.description for attached_workspace in access.workspaces] == [
        "for all",
        "for all",
        "",
    ]
    assert await load_access(ports, owner) == NO_ACCESS


async def test_a_missing_reference_is_named(ports: Ports, owner: Actor) -> None:
    first, notes = await sandbox(ports, owner), await workspace(ports, owner)
    config = {"sandbox": first.id, "workspaces": [{"name": "n", "workspaceId": notes.id}]}
    await load_access(ports, owner, **config)
    await sandboxes.delete(ports, owner, first.id)
    with pytest.raises(NotFound, match=rf"\AReferenced sandbox not found: {first.id}\Z"):
        await load_access(ports, owner, **config)
    config["sandbox"] = (await sandbox(ports, owner)).id
    await workspaces.delete(ports, owner, notes.id)
    message = rf'\AReferenced workspace not found: {notes.id} \(as "n"\)\Z'
    with pytest.raises(NotFound, match=message):
        await load_access(ports, owner, **config)
    with pytest.raises(NotFound, match="Referenced sandbox not found: no such thing"):
        await load_access(ports, owner, sandbox="no such thing")


async def test_records_of_another_tenant_are_not_accessible(ports: Ports, owner: Actor) -> None:
    first, notes = await sandbox(ports, owner), await workspace(ports, owner)
    _, stranger = await create_tenant(ports, "globex")
    with pytest.raises(NotFound, match="Referenced sandbox"):
        await load_access(ports, stranger, sandbox=first.id)
    with pytest.raises(NotFound, match="Referenced workspace"):
        await load_access(ports, stranger, workspaces=[{"name": "n", "workspaceId": notes.id}])


async def test_a_change_applies_at_the_next_call(ports: Ports, owner: Actor) -> None:
    first = await sandbox(ports, owner)
    assert (await load_access(ports, owner, sandbox=first.id)).sandbox is not None
    await sandboxes.patch(ports, owner, first.id, {"config": {"permissionMode": "edit"}})
    access = (await load_access(ports, owner, sandbox=first.id)).sandbox
    assert access is not None
    assert access.mode is PermissionMode.EDIT


class CountingPort:
    """A port that records the names of the called methods."""

    def __init__(self, port: Any) -> None:
        self._port, self.calls = port, []

    calls: list[str]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            return await method(*args, **options)

        return call


async def test_any_number_of_attachments_is_loaded_in_two_queries(
    ports: Ports, owner: Actor
) -> None:
    ids = [(await workspace(ports, owner)).id for _ in range(5)]
    sandbox_ids = [(await sandbox(ports, owner)).id for _ in range(5)]
    attached = [
        {"name": f"w{n}", "workspaceId": id, "sandbox": sandbox_ids[n]} for n, id in enumerate(ids)
    ]
    records = CountingPort(ports.records)
    counting = replace(ports, records=records)
    access = await load_access(counting, owner, workspaces=attached)
    assert sorted(records.calls) == ["get", "get", "revision"]
    assert await load_access(counting, owner, workspaces=attached) is access
    assert sorted(records.calls) == ["get", "get", "revision", "revision"]


async def test_variables_are_sealed_to_their_sandbox_and_name(ports: Ports, owner: Actor) -> None:
    first = await sandbox(ports, owner, envVars={"TOKEN": CANARY, "EMPTY": ""})
    assert CANARY not in str(first.body)
    access = (await load_access(ports, owner, sandbox=first.id)).sandbox
    assert access is not None
    assert sandboxes.decrypt_config(ports, access)["envVars"] == {"TOKEN": CANARY, "EMPTY": ""}
    without_variables = (
        await load_access(ports, owner, sandbox=(await sandbox(ports, owner)).id)
    ).sandbox
    assert without_variables is not None
    assert "envVars" not in sandboxes.decrypt_config(ports, without_variables)
    other = await sandbox(ports, owner)
    swapped = first.body["config"]["envVars"]
    for body, id in (
        ({"envVars": swapped}, other.id),
        ({"envVars": {"EMPTY": swapped["TOKEN"]}}, first.id),
    ):
        config = {**first.body["config"], **body}
        change = RecordChange(owner.tenant, RecordType.SANDBOX, id, {"name": "x", "config": config})
        await ports.trees.commit([Commit((), "x", "x", 0, changes=(change,))])
        swapped_access = (await load_access(ports, owner, sandbox=id)).sandbox
        assert swapped_access is not None
        with pytest.raises(CorruptContent):
            sandboxes.decrypt_config(ports, swapped_access)


def test_resource_limits_follow_the_config_and_excessive_ones_are_refused() -> None:
    assert sandboxes.resource_limits({}) == ResourceLimits(30, 65_536, 1024, network=False)
    config = {"timeout": 600, "outputLimitBytes": 5, "memoryLimit": 64, "internet": True}
    assert sandboxes.resource_limits(config) == ResourceLimits(
        600, 5, 64, memory_limit_required=True, network=True
    )
    with pytest.raises(ValidationError, match=r"config.timeout must be an integer from 1 to 600"):
        sandboxes.resource_limits({"timeout": 601})
    with pytest.raises(ValidationError, match="from 1 to 300"):
        sandboxes.resource_limits({"provider": "lambda", "timeout": 301})


class LimitedProvider:
    """A provider with a memory limit that runs no command."""

    tier = "narrow"

    def __init__(self, memory: int) -> None:
        self._memory = memory

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if persistent:
            return "it keeps nothing"
        return "too much memory" if limits.memory_mb > self._memory else None

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        raise SandboxUnavailable("it runs nothing")


async def test_limits_that_a_provider_cannot_enforce_are_refused_on_save(
    ports: Ports, owner: Actor
) -> None:
    limited = replace(ports, sandboxes={"docker": LimitedProvider(2048), "e2b": LimitedProvider(0)})
    await sandbox(limited, owner, provider="docker", memoryLimit=2048)
    with pytest.raises(
        ValidationError, match="cannot be enforced by provider docker: too much memory"
    ):
        await sandbox(limited, owner, provider="docker", memoryLimit=2049)
    with pytest.raises(ValidationError, match="it keeps nothing"):
        await sandbox(limited, owner, provider="docker", persistent=True)
    await sandbox(
        limited, owner, provider="e2b", memoryLimit=64
    )  # refused without a memoryLimit too
    await sandbox(limited, owner, provider="daytona", memoryLimit=64)


async def test_an_option_with_an_internal_address_is_refused(ports: Ports, owner: Actor) -> None:
    checking = replace(ports, webhook_sender=HttpWebhookSender())
    for url in ("https://127.0.0.1/", "http://93.184.216.34/", "unix:///run/docker.sock"):
        with pytest.raises(ValidationError, match=r"config.options.nested.0.apiUrl is refused"):
            await sandbox(checking, owner, options={"nested": [{"apiUrl": url}]})
    await sandbox(checking, owner, options={"apiUrl": "https://93.184.216.34/"})


async def test_deleting_a_workspace_deletes_its_files_in_one_commit(anywhere: Ports) -> None:
    _, owner = await create_tenant(anywhere)
    notes = await workspace(anywhere, owner)
    stack = await stacks.workspace_stack(anywhere, owner, notes.id)
    for n in range(12):
        await files.put(anywhere, stack, Path(f"{n}.md"), b"x", owner)
    trees = CountingPort(anywhere.trees)
    counting = replace(anywhere, trees=trees)
    await workspaces.delete(counting, owner, notes.id)
    assert trees.calls == ["read", "commit", "read"]
    [tree] = await anywhere.trees.read(stack)
    assert not tree.heads
    history = await anywhere.trees.history(stack[0], Path("3.md"))
    assert [version.head.entry is None for version in history] == [True, False]
    assert history[0].reason == "delete a workspace"
    [entry, *_] = await anywhere.records.audit(owner.tenant)
    assert (entry.reason, entry.subjects) == ("delete a workspace", (f"workspace/{notes.id}",))
    with pytest.raises(NotFound):
        await stacks.workspace_stack(anywhere, owner, notes.id)


async def test_a_run_in_a_workspace_reads_it_after_its_deletion(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    notes = await workspace(ports, owner)
    bound = replace(owner, workspace=notes.id)
    await files.put(ports, await stacks.default_stack(ports, bound), Path("a.md"), b"kept", bound)
    run = await runs.start(ports, bound, RunRequest("work"))
    await workspaces.delete(ports, owner, notes.id)
    assert (await snapshots.read_file(ports, run, Path("a.md")))[1] == b"kept"
    with pytest.raises(NotFound):
        await runs.start(ports, bound, RunRequest("work"))


async def test_no_late_write_survives_the_deletion_of_its_workspace(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    outcomes = set()
    for turn in range(40):
        notes = await workspace(ports, owner)
        stack = await stacks.workspace_stack(ports, owner, notes.id)
        writing = files.put(ports, stack, Path("a.md"), b"x", owner)
        deletion = start_after_yields(turn, workspaces.delete(ports, owner, notes.id))
        _, lost = await race(writing, deletion)
        assert all(isinstance(error, NotFound) for error in lost)
        outcomes.add(len(lost))
        [tree] = await ports.trees.read(stack)
        assert not tree.heads
    assert 0 in outcomes


async def test_a_deletion_includes_a_concurrent_write(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    for turn in range(40):
        notes = await workspace(ports, owner)
        stack = await stacks.workspace_stack(ports, owner, notes.id)
        writing = start_after_yields(turn, files.put(ports, stack, Path("a.md"), b"x", owner))
        _, lost = await race(workspaces.delete(ports, owner, notes.id), writing)
        assert all(isinstance(error, NotFound) for error in lost)
        [tree] = await ports.trees.read(stack)
        assert not tree.heads
