"""Background commands in persistent sandboxes of the local provider."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from msgspec import structs
from tests.support.escape_harness import processes_marked
from tests.support.stores import open_ports
from tests.support.tool_fixture import BOX, NOTES, TOOLS, ToolTenant, create_tool_tenant
from tests.support.wait import wait_until

from carrel.actions.sandbox import sandboxes, workspace_files, workspaces
from carrel.adapters.sandbox.local import LocalSandbox, cgroups
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import Audience
from carrel.core.sandbox.tool_access import derive_instance_key, derive_namespace
from carrel.ports import CommandSlots

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tools(tmp_path: File) -> AsyncIterator[ToolTenant]:
    local = LocalSandbox(tmp_path / "sandboxes")
    async with open_ports(tmp_path) as opened:
        yield await create_tool_tenant(opened, runner=local, persistent=True)
        await local.close()


def local(tools: ToolTenant) -> LocalSandbox:
    assert isinstance(tools.runner, LocalSandbox)
    return tools.runner


async def start_job(tools: ToolTenant, command: str) -> str:
    output = await tools.call("bash", command=command, background=True)
    return re.findall(r"call_[0-9a-f]{24}", output)[0]  # type: ignore[no-any-return]


async def get_status(tools: ToolTenant, id: str, action: str = "status") -> Any:
    reply = await tools.reply_without_check("async_status", statusId=id, action=action)
    return reply.content if action == "logs" else json.loads(reply.content)


async def wait_for_job(tools: ToolTenant, id: str) -> None:
    for (_, job_id), following in tuple(local(tools)._followers.items()):
        if job_id == id:
            await following.task


async def wait_for_log(tools: ToolTenant, id: str, log: str) -> None:
    """Wait until a job's log equals this text."""

    async def is_printed() -> object:
        return await get_status(tools, id, "logs") == log

    await wait_until(is_printed, f"the job has printed {log!r}")


async def test_a_jobs_changes_are_saved_when_it_ends(tools: ToolTenant) -> None:
    await tools.call("write", file_path="old", content="x")
    [before] = await tools.ports.trees.revisions([tools.scope()])
    id = await start_job(tools, "sleep 0.3; echo done > a; mkdir d; echo b > d/b; rm old")
    await wait_for_job(tools, id)
    assert await tools.files() == {"a": b"done\n", "d/b": b"b\n"}
    assert await tools.ports.trees.revisions([tools.scope()]) == (before + 1,)
    [version] = await tools.history("a")
    assert version.author == tools.owner.name
    assert version.reason == f"bash (background) {id}"


async def test_a_jobs_files_are_saved_before_its_status_says_that_it_ended(
    tools: ToolTenant,
) -> None:
    id = await start_job(tools, "while [ ! -e go ]; do sleep 0.02; done; echo done > a")
    assert await get_status(tools, id) == {"status": "processing", "jobId": id}
    await tools.call("bash", command="touch go")

    async def has_ended() -> object:
        return (await get_status(tools, id))["status"] != "processing"

    await wait_until(has_ended, "the job has ended")
    assert (await tools.files())["a"] == b"done\n"
    [after] = await tools.ports.trees.revisions([tools.scope()])
    await tools.call("bash", command="true")
    assert await tools.ports.trees.revisions([tools.scope()]) == (after,)


async def test_a_tenants_jobs_are_bounded_and_ended_ones_do_not_count(tools: ToolTenant) -> None:
    ports = replace(tools.ports, command_slots=CommandSlots(job_limit=2))
    tools.context = structs.replace(tools.context, ports=ports)
    first, second = [await start_job(tools, "sleep 600") for _ in range(2)]
    for _ in range(2):
        with pytest.raises(Conflict, match="2 background jobs of this tenant are already running"):
            await start_job(tools, "sleep 600")
    await get_status(tools, first, "stop")
    third = await start_job(tools, "sleep 600")
    for id in (second, third):
        await get_status(tools, id, "stop")


async def test_a_stopped_jobs_changes_are_saved_as_partial(tools: ToolTenant) -> None:
    id = await start_job(tools, "echo half > a; echo begun; exec sleep 600")
    await wait_for_log(tools, id, "begun\n")
    assert (await get_status(tools, id, "stop"))["status"] == "failed"
    assert await tools.files() == {"a": b"half\n"}
    [version] = await tools.history("a")
    assert version.reason == f"bash (background, partial) {id}"


async def test_closing_the_provider_saves_the_changes_of_its_jobs(tools: ToolTenant) -> None:
    id = await start_job(tools, "echo half > a; echo begun; exec sleep 600")
    await wait_for_log(tools, id, "begun\n")
    await local(tools).close()
    assert await tools.files() == {"a": b"half\n"}
    assert (await get_status(tools, id))["error"].endswith("[exit code 137]")


async def test_concurrent_writes_of_a_job_and_of_others_are_all_in_history(
    tools: ToolTenant,
) -> None:
    for path in ("same", "gone"):
        await tools.call("write", file_path=path, content="1")
    id = await start_job(
        tools, "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo 2 > same; rm gone"
    )
    for path in ("same", "gone", "theirs"):
        await workspace_files.write(tools.workspace_files(), Path(path), b"others")
    await tools.call("bash", command="cat same; touch /tmp/go")
    await wait_for_job(tools, id)
    files = await tools.files()
    assert (files["same"], files["theirs"]) == (b"2\n", b"others")
    assert b"others" in await tools.past_contents("same")


async def test_too_many_changes_are_reported_in_the_jobs_log(tools: ToolTenant) -> None:
    id = await start_job(tools, "for n in {1..5001}; do : > f$n; done")
    await wait_for_job(tools, id)
    assert "[the changes were not saved: 5001 paths were changed" in await get_status(
        tools, id, "logs"
    )
    assert await tools.files() == {}


async def test_deleting_a_sandbox_ends_its_instances(tools: ToolTenant) -> None:
    await start_job(tools, "echo half > a; exec sleep 600")
    await tools.call("bash", command="while [ ! -e a ]; do sleep 0.02; done")
    await sandboxes.delete(tools.ports, tools.owner, BOX)
    assert (local(tools)._instances, local(tools)._followers) == ({}, {})
    assert await tools.files() == {"a": b"half\n"}


async def test_deleting_a_workspace_ends_its_instances_and_saves_nothing(
    tools: ToolTenant,
) -> None:
    id = await start_job(tools, "echo begun; while sleep 0.01; do date +%N > a; done")
    await wait_for_log(tools, id, "begun\n")
    await workspaces.delete(tools.ports, tools.owner, NOTES)
    assert (local(tools)._instances, local(tools)._followers) == ({}, {})
    assert await tools.files() == {}
    instance_key = derive_instance_key(
        derive_namespace(tools.owner.tenant, NOTES), BOX, Audience.MAIN
    )
    assert await local(tools).get_job(instance_key, id) is None


@pytest.mark.parametrize(
    ("config", "reused"),
    [
        ({"memoryLimit": 512}, False),
        ({"envVars": {"A": "2"}}, False),
        ({"lifecycle": {"maxLifetimeSeconds": 500}}, False),
        ({"timeout": 20, "permissionMode": "edit"}, True),
        ({"envVars": {"A": "********"}}, True),
    ],
)
async def test_an_instance_is_reused_only_while_its_settings_are_unchanged(
    tools: ToolTenant, config: dict[str, Any], reused: bool
) -> None:
    await sandboxes.patch(tools.ports, tools.owner, BOX, {"config": {"envVars": {"A": "1"}}})
    await tools.call("bash", command="echo old > ~/a")
    if "memoryLimit" in config and cgroups.find_cgroups() is None:
        with pytest.raises(ValidationError, match="memoryLimit cannot be enforced here"):
            await sandboxes.patch(tools.ports, tools.owner, BOX, {"name": "b", "config": config})
        return
    await sandboxes.patch(tools.ports, tools.owner, BOX, {"name": "b", "config": config})
    assert bool(local(tools)._instances) is reused
    output = await tools.call("bash", command="cat ~/a; exit 0")
    assert (output == "old\n") is reused


async def test_an_idle_instance_ends_after_its_configured_timeout(tools: ToolTenant) -> None:
    # The remaining process must write within this time, even on a busy machine.
    lifecycle = {"idleTimeoutSeconds": 3, "maxLifetimeSeconds": 600}
    await sandboxes.patch(tools.ports, tools.owner, BOX, {"config": {"lifecycle": lifecycle}})
    await tools.call("bash", command="(setsid sh -c 'sleep 0.3; echo late > a' &) >/dev/null 2>&1")
    await wait_until(lambda: not local(tools)._instances, "the instance is gone")
    await wait_until(lambda: not local(tools)._end_tasks, "the instance has ended")
    assert await tools.files() == {"a": b"late\n"}


RESTLESS = r"""
import os, shutil
kinds = [
    lambda x: open(x, "w").write("y" * 1000),
    lambda x: os.symlink("/etc/passwd", x),
    os.mkfifo,
    lambda x: (os.makedirs(x + "/q/r"), open(x + "/q/r/s", "w").write("z")),
]
turn = 0
while True:
    turn += 1
    for x in ("e", "f", "g"):
        try:
            shutil.rmtree(x) if os.path.isdir(x) and not os.path.islink(x) else os.unlink(x)
        except OSError:
            pass
        try:
            kinds[(turn + ord(x)) % 4](x)
        except OSError:
            pass
"""


async def test_commands_succeed_while_a_job_keeps_replacing_files(tools: ToolTenant) -> None:
    await tools.call("write", file_path="restless.py", content=RESTLESS)
    id = await start_job(tools, "exec python3 restless.py")
    for number in range(30):
        await tools.call("bash", command=f"echo {number} > own")
        assert (await tools.files())["own"] == f"{number}\n".encode()
    await get_status(tools, id, "stop")
    for path, content in (await tools.files()).items():
        if path in {"e", "f", "g"}:
            assert content in {b"/etc/passwd", b""} or set(content) == set(b"y")
    assert "restless.py" in await tools.call("bash", command="rm -rf e f g; ls")


async def test_a_job_of_a_call_with_an_id_saves_later_changes_too(
    tools: ToolTenant,
) -> None:
    mark, bash = os.urandom(8).hex(), TOOLS["bash"]
    command = f"echo first > a; (: {mark}; sleep 0.3; echo later > b) &"
    arguments = bash.parse_arguments({"command": command, "background": True})
    output = await bash.run(structs.replace(tools.context, call_id="one"), arguments)
    await wait_for_job(tools, re.findall(r"call_[0-9a-f]{24}", str(output))[0])
    await wait_until(lambda: not processes_marked(mark), "the command has ended")
    await local(tools).close()
    assert await tools.files() == {"a": b"first\n", "b": b"later\n"}


async def test_a_shared_session_sees_neither_the_instance_nor_the_jobs_of_a_private_one(
    tools: ToolTenant,
) -> None:
    await tools.call("write", file_path="MEMORY.md", content="zanzibar")
    await tools.call("bash", command="cp MEMORY.md /tmp/copy; cp MEMORY.md ~/copy")
    id = await start_job(tools, "cat MEMORY.md")
    await wait_for_job(tools, id)
    assert await get_status(tools, id, "logs") == "zanzibar"
    tools.context = structs.replace(tools.context, audience=Audience.SHARED)
    with pytest.raises(NotFound):
        await get_status(tools, id)
    output = await tools.call("bash", command="cat MEMORY.md /tmp/copy ~/copy; echo a > report.csv")
    assert "zanzibar" not in output
    shared_id = await start_job(tools, "cat report.csv; echo b > report.csv; echo x > MEMORY.md")
    await wait_for_job(tools, shared_id)
    assert (await get_status(tools, shared_id, "logs")).startswith("a\n")
    assert await tools.files() == {"MEMORY.md": b"zanzibar", "report.csv": b"b\n"}
