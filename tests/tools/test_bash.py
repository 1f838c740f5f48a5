"""Commands over the files of a workspace: what they change comes back, and all is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import BOX, NOTES, ToolTenant, create_tool_tenant

from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.actions.sandbox import workspaces
from carrel.actions.sessions import sessions
from carrel.core.agents.agent import agent_fields
from carrel.core.errors import (
    CapabilityNotProvided,
    Conflict,
    Forbidden,
    Refusal,
    WorkspaceTooLarge,
)
from carrel.core.runs import RunStatus
from carrel.core.sandbox.tool_access import derive_namespace
from carrel.ports import Ports
from carrel.ports.sandbox import FileKind
from carrel.tools.calls import open_tool_context, run_call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
async def shop(ports: Ports) -> ToolTenant:
    return await create_tool_tenant(ports)


async def refused(shop: ToolTenant, **given: object) -> str:
    with pytest.raises(Refusal) as problem:
        await shop.call("bash", **given)
    return str(problem.value)


async def test_output_errors_and_a_bad_end_are_told_in_that_order(shop: ToolTenant) -> None:
    assert await shop.call("bash", command="echo out; echo err >&2") == "out\nerr\n"
    assert await shop.call("bash", command="printf out; exit 7") == "out\n[exit code 7]"
    assert await shop.call("bash", command="true") == ""
    assert await shop.call("bash", command="exit 3") == "[exit code 3]"


async def test_what_a_command_changes_comes_back_as_one_commit(shop: ToolTenant) -> None:
    for path in ("keep", "drop", "change", "dir/a"):
        await shop.call("write", file_path=path, content=path)
    [before] = await shop.ports.trees.revisions([shop.scope()])
    command = "rm drop; echo more >> change; mkdir -p new; echo x > new/y; chmod +x keep; ln -s y l"
    assert await shop.call("bash", command=command) == ""
    [after] = await shop.ports.trees.revisions([shop.scope()])
    assert after == before + 1
    assert await shop.files() == {
        "keep": b"keep",
        "change": b"changemore\n",
        "dir/a": b"dir/a",
        "new/y": b"x\n",
        "l": b"y",
    }
    assert await shop.type_of("keep") == "text/plain; executable"
    assert await shop.type_of("l") == "inode/symlink"
    [version, *_] = await shop.history("change")
    assert version.author == shop.owner.name
    assert version.reason.startswith("bash call_")
    assert version.reason.endswith(f": {command}")


async def test_nothing_is_written_where_nothing_changed(shop: ToolTenant) -> None:
    await shop.call("write", file_path="a", content="x")
    before = await shop.ports.trees.revisions([shop.scope()])
    await shop.call("bash", command="cat a; touch a; cp a b; rm b")
    assert await shop.ports.trees.revisions([shop.scope()]) == before


async def test_files_and_directories_change_places(shop: ToolTenant) -> None:
    await shop.call("write", file_path="a", content="file")
    await shop.call("write", file_path="d/x", content="x")
    await shop.call("write", file_path="d/y/z", content="z")
    await shop.call("bash", command="rm -r a d; mkdir a; echo 1 > a/b; echo 2 > d")
    assert await shop.files() == {"a/b": b"1\n", "d": b"2\n"}


async def test_the_next_command_finds_what_the_last_one_left(shop: ToolTenant) -> None:
    await shop.call("bash", command="printf '#!/bin/sh\necho ran\n' > go; chmod +x go; ln -s go l")
    assert await shop.call("bash", command="./go; ./l; X=1; cd /tmp") == "ran\nran\n"
    assert await shop.call("bash", command="echo ${X:-unset}; ls") == "unset\ngo\nl\n"
    [*_, last] = shop.runner.orders
    assert last.files
    assert {str(path): one.kind for path, one in last.files.items()} == {
        "go": FileKind.EXECUTABLE,
        "l": FileKind.LINK,
    }


async def test_work_that_was_cut_short_is_kept_and_marked(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, timeout=2)
    said = await shop.call("bash", command="echo half > a; echo begun; exec sleep 600")
    assert said == "begun\n[timed out after 2s]"
    assert await shop.files() == {"a": b"half\n"}
    [version] = await shop.history("a")
    assert version.reason.startswith("bash (partial) call_")


async def test_an_agent_without_workspaces_has_an_empty_directory(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, {"sandbox": BOX}, envVars={"GREETING": "hello"})
    assert await shop.call("bash", command="echo $GREETING > a; cat a; ls") == "hello\na\n"
    assert await shop.call("bash", command="ls") == ""
    assert await shop.files() == {}
    [first, _] = shop.runner.orders
    assert first.files is None


async def test_what_is_wrong_is_told_before_anything_runs(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, runtimes=["bash", "node"])
    assert await refused(shop, command=" \n") == "command is required"
    assert await refused(shop, command="a\0b") == "command must not contain NUL"
    assert await refused(shop, command="ä" * 65_536) == "command must have 131071 bytes at most"
    assert await refused(shop, command="true", workspace="x") == "unknown workspace x"
    assert await refused(shop, command="/usr/bin/python3.11 -c 1") == (
        "this sandbox does not allow python commands"
    )
    assert await shop.call("bash", command="echo pythonic") == "pythonic\n"
    assert len(shop.runner.orders) == 1


async def test_bounds_that_cannot_be_kept_are_refused(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, internet=True)
    with pytest.raises(CapabilityNotProvided, match="Sandbox setup failed: no network here"):
        await shop.gate("bash", command="true")


async def test_a_persistent_sandbox_has_an_instance_for_each_workspace(ports: Ports) -> None:
    lifecycle = {"idleTimeoutSeconds": 60, "maxLifetimeSeconds": 600}
    more = {"lifecycle": lifecycle, "options": {"image": "small"}}
    shop = await create_tool_tenant(ports, persistent=True, **more)
    with pytest.raises(CapabilityNotProvided, match="Sandbox setup failed: nothing is kept here"):
        await shop.gate("bash", command="true")
    shop.runner.keeps = True
    await shop.call("bash", command="true")
    [order] = shop.runner.orders
    assert order.instance_key == f"{derive_namespace(shop.owner.tenant, NOTES)}-{BOX}"
    assert (order.idle_seconds, order.lifetime_seconds) == (60, 600)
    assert order.options == {"image": "small"}


async def test_a_provider_that_is_not_here_is_named(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, provider="e2b")
    with pytest.raises(
        CapabilityNotProvided, match="Sandbox setup failed: provider e2b is not available"
    ):
        await shop.gate("bash", command="true")


async def test_a_provider_may_refuse_to_run(shop: ToolTenant) -> None:
    shop.runner.refusal = "no isolation here"
    with pytest.raises(CapabilityNotProvided, match="Sandbox setup failed: no isolation here"):
        await shop.call("bash", command="true")


async def test_no_sandbox_lets_a_command_reach_a_read_only_workspace(shop: ToolTenant) -> None:
    with pytest.raises(Forbidden, match="workspace is read-only"):
        await shop.call("bash", command="ls", workspace="docs")
    assert not shop.runner.orders


async def test_secrets_in_files_are_replaced_and_the_caller_is_told(shop: ToolTenant) -> None:
    await secrets.put(shop.ports, shop.owner, "door", "sesame-open-now")
    said = await shop.call("bash", command="echo say sesame-open-now > a; touch sesame-open-now")
    assert said == (
        "[redacted in a: door]\n[warning: a file whose name contains a secret was not saved]"
    )
    assert await shop.files() == {"a": b"say [REDACTED:door]\n"}
    [version] = await shop.history("a")
    assert "sesame-open-now" not in version.reason


async def test_no_half_of_a_secret_stands_in_a_reason(shop: ToolTenant) -> None:
    secret = "sesame-open-now-and-for-ever"
    await secrets.put(shop.ports, shop.owner, "door", secret)
    for before in range(170, 400, 15):
        await shop.call("bash", command=f"echo {before} > a # {'x' * before}{secret}")
    reasons = [version.reason for version in await shop.history("a")]
    assert len(reasons) == 16
    assert not [reason for reason in reasons if "sesame" in reason]


async def test_too_many_changes_are_refused_as_a_whole(shop: ToolTenant) -> None:
    with pytest.raises(WorkspaceTooLarge) as problem:
        await shop.call("bash", command="echo hi; for n in {1..5001}; do : > f$n; done")
    assert str(problem.value).startswith(
        "the changes were not saved: 5001 paths changed; the limit is 5000: f1, f10, "
    )
    assert str(problem.value).endswith("more\nhi\n")
    assert await shop.files() == {}


async def test_what_was_said_is_told_though_the_workspace_went_meanwhile(
    shop: ToolTenant, tmp_path: File
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    for pipe in (began, go):
        os.mkfifo(pipe)
    command = f"echo said; echo x > a; : > {began}; : < {go}"
    under_way = asyncio.create_task(refused(shop, command=command))
    await asyncio.to_thread(began.read_bytes)
    await workspaces.delete(shop.ports, shop.owner, NOTES)
    await asyncio.to_thread(go.write_bytes, b"")
    told = await under_way
    assert told.startswith("the changes were not saved: no such workspace: ")
    assert told.endswith("\nsaid\n")


async def test_a_run_is_named_by_what_it_writes_and_must_be_under_way(shop: ToolTenant) -> None:
    run = await runs.start(shop.ports, shop.owner, RunRequest("noop", agent="kate"))
    shop.context = structs.replace(shop.context, run=run)
    await shop.call("bash", command="echo x > a")
    await shop.call("write", file_path="b", content="y")
    for path in ("a", "b"):
        [version] = await shop.history(path)
        assert version.run == run.id
    ended = await runs.update(shop.ports, shop.owner, run.id, status=RunStatus.COMPLETED)
    shop.context = structs.replace(shop.context, run=ended)
    with pytest.raises(Conflict):
        await shop.gate("bash", command="echo x > a")
    with pytest.raises(Conflict):
        await shop.gate("write", file_path="b", content="z")
    assert await shop.call("read", file_path="b") == "     1\ty\n"


async def test_whoever_calls_it_the_same_each_call_is_one_of_its_own(shop: ToolTenant) -> None:
    config = agent_fields(shop.agent)["config"]
    await agents.create(shop.ports, shop.owner, NewAgent("marco", "Marco", config=config))
    talk = await sessions.start(shop.ports, shop.owner, "kate")
    seats = {
        "kate": await open_tool_context(shop.ports, shop.owner, "kate"),
        "marco": await open_tool_context(shop.ports, shop.owner, "marco"),
        "talk": await open_tool_context(shop.ports, shop.owner, "kate", session=talk.id),
    }
    for name, context in seats.items():
        for _ in range(2):
            told = await run_call(context, "bash", {"command": f"echo {name} >> all"}, "call-1")
            assert (told.content, told.is_error) == ("", False)
    assert await shop.files() == {"all": b"kate\nmarco\ntalk\n"}
    assert [version.reason for version in await shop.history("all")] == [
        f"bash call-1: echo {name} >> all" for name in ("talk", "marco", "kate")
    ]
