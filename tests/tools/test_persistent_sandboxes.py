"""What commands that nobody waits for have changed, in sandboxes that the local provider keeps."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path as File
from typing import Any

import pytest
from msgspec import structs
from tests.support.escape_harness import processes_marked
from tests.support.stores import open_ports
from tests.support.tool_fixture import BOX, NOTES, TOOLS, ToolTenant, create_tool_tenant

from carrel.actions.sandbox import sandboxes, workspace_files, workspaces
from carrel.adapters.sandbox.local import LocalSandbox, cgroups
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.tool_access import derive_instance_key, derive_namespace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def shop(tmp_path: File) -> AsyncIterator[ToolTenant]:
    local = LocalSandbox(tmp_path / "sandboxes")
    async with open_ports(tmp_path) as opened:
        yield await create_tool_tenant(opened, runner=local, persistent=True)
        await local.close()


def local(shop: ToolTenant) -> LocalSandbox:
    assert isinstance(shop.runner, LocalSandbox)
    return shop.runner


async def begun(shop: ToolTenant, command: str) -> str:
    said = await shop.call("bash", command=command, background=True)
    return re.findall(r"call_[0-9a-f]{24}", said)[0]  # type: ignore[no-any-return]


async def asked(shop: ToolTenant, id: str, action: str = "status") -> Any:
    tool = TOOLS["async_status"]
    return await tool.run(shop.context, tool.parse_arguments({"statusId": id, "action": action}))


async def ended(shop: ToolTenant, id: str) -> None:
    for (_, known), following in tuple(local(shop)._followers.items()):
        if known == id:
            await following.task


async def logged(shop: ToolTenant, id: str, log: str) -> None:
    """Once a job has printed this."""
    async with asyncio.timeout(30):
        while await asked(shop, id, "logs") != log:  # noqa: ASYNC110 - it is outside
            await asyncio.sleep(0.02)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - what is waited for is outside
            await asyncio.sleep(0.02)


async def test_what_a_job_changed_is_brought_back_when_it_ends(shop: ToolTenant) -> None:
    await shop.call("write", file_path="old", content="x")
    [before] = await shop.ports.trees.revisions([shop.scope()])
    id = await begun(shop, "sleep 0.3; echo done > a; mkdir d; echo b > d/b; rm old")
    await ended(shop, id)
    assert await shop.files() == {"a": b"done\n", "d/b": b"b\n"}
    assert await shop.ports.trees.revisions([shop.scope()]) == (before + 1,)
    [version] = await shop.history("a")
    assert version.author == shop.owner.name
    assert version.reason.startswith(f"bash (background) {id}: sleep 0.3; echo done")


async def test_who_sees_that_a_job_has_ended_finds_its_files(shop: ToolTenant) -> None:
    id = await begun(shop, "while [ ! -e go ]; do sleep 0.02; done; echo done > a")
    assert await asked(shop, id) == {"status": "processing", "jobId": id}
    await shop.call("bash", command="touch go")
    async with asyncio.timeout(30):
        while (await asked(shop, id))["status"] == "processing":  # noqa: ASYNC110 - it is outside
            await asyncio.sleep(0.02)
    assert (await shop.files())["a"] == b"done\n"
    [after] = await shop.ports.trees.revisions([shop.scope()])
    await shop.call("bash", command="true")
    assert await shop.ports.trees.revisions([shop.scope()]) == (after,)


async def test_a_job_that_is_stopped_keeps_what_it_had_done(shop: ToolTenant) -> None:
    id = await begun(shop, "echo half > a; echo begun; exec sleep 600")
    await logged(shop, id, "begun\n")
    assert (await asked(shop, id, "stop"))["status"] == "failed"
    assert await shop.files() == {"a": b"half\n"}
    [version] = await shop.history("a")
    assert version.reason.startswith(f"bash (background, partial) {id}: ")


async def test_jobs_that_end_with_their_server_keep_what_they_had_done(shop: ToolTenant) -> None:
    id = await begun(shop, "echo half > a; echo begun; exec sleep 600")
    await logged(shop, id, "begun\n")
    await local(shop).close()
    assert await shop.files() == {"a": b"half\n"}
    assert (await asked(shop, id))["error"].endswith("[exit code 137]")


async def test_others_and_a_job_meet_as_they_do_with_any_command(shop: ToolTenant) -> None:
    for path in ("same", "gone"):
        await shop.call("write", file_path=path, content="1")
    id = await begun(shop, "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo 2 > same; rm gone")
    for path in ("same", "gone", "theirs"):
        await workspace_files.write(shop.workspace_files(), Path(path), b"others")
    await shop.call("bash", command="cat same; touch /tmp/go")
    await ended(shop, id)
    files = await shop.files()
    assert (files["same"], files["theirs"]) == (b"2\n", b"others")
    assert b"others" in await shop.past_contents("same")


async def test_what_is_too_much_is_told_with_the_job(shop: ToolTenant) -> None:
    id = await begun(shop, "for n in {1..5001}; do : > f$n; done")
    await ended(shop, id)
    assert "[the changes were not saved: 5001 paths were changed" in await asked(shop, id, "logs")
    assert await shop.files() == {}


async def test_deleting_a_sandbox_lets_its_instances_go(shop: ToolTenant) -> None:
    await begun(shop, "echo half > a; exec sleep 600")
    await shop.call("bash", command="while [ ! -e a ]; do sleep 0.02; done")
    await sandboxes.delete(shop.ports, shop.owner, BOX)
    assert (local(shop)._instances, local(shop)._followers) == ({}, {})
    assert await shop.files() == {"a": b"half\n"}


async def test_deleting_a_workspace_lets_its_instances_go_and_nothing_comes_back(
    shop: ToolTenant,
) -> None:
    id = await begun(shop, "echo begun; while sleep 0.01; do date +%N > a; done")
    await logged(shop, id, "begun\n")
    await workspaces.delete(shop.ports, shop.owner, NOTES)
    assert (local(shop)._instances, local(shop)._followers) == ({}, {})
    assert await shop.files() == {}
    called = derive_instance_key(derive_namespace(shop.owner.tenant, NOTES), BOX)
    assert await local(shop).get_job(called, id) is None


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"memoryLimit": 512}, False),
        ({"envVars": {"A": "2"}}, False),
        ({"lifecycle": {"maxLifetimeSeconds": 500}}, False),
        ({"timeout": 20, "permissionMode": "edit"}, True),
        ({"envVars": {"A": "********"}}, True),
    ],
)
async def test_nothing_goes_on_by_settings_that_have_changed(
    shop: ToolTenant, config: dict[str, Any], kept: bool
) -> None:
    await sandboxes.patch(shop.ports, shop.owner, BOX, {"config": {"envVars": {"A": "1"}}})
    await shop.call("bash", command="echo old > ~/a")
    if "memoryLimit" in config and cgroups.find_cgroups() is None:
        with pytest.raises(ValidationError, match="memoryLimit cannot be enforced here"):
            await sandboxes.patch(shop.ports, shop.owner, BOX, {"name": "b", "config": config})
        return
    await sandboxes.patch(shop.ports, shop.owner, BOX, {"name": "b", "config": config})
    assert bool(local(shop)._instances) is kept
    said = await shop.call("bash", command="cat ~/a; exit 0")
    assert (said == "old\n") is kept


async def test_a_sandbox_is_given_what_its_record_says(shop: ToolTenant) -> None:
    # Within that time what is left there has to write, however busy the machine is.
    lifecycle = {"idleTimeoutSeconds": 3, "maxLifetimeSeconds": 600}
    await sandboxes.patch(shop.ports, shop.owner, BOX, {"config": {"lifecycle": lifecycle}})
    await shop.call("bash", command="(setsid sh -c 'sleep 0.3; echo late > a' &) >/dev/null 2>&1")
    await until(lambda: not local(shop)._instances)
    await until(lambda: not local(shop)._end_tasks)
    assert await shop.files() == {"a": b"late\n"}


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


async def test_whatever_goes_on_there_nobody_stumbles_over_it(shop: ToolTenant) -> None:
    await shop.call("write", file_path="restless.py", content=RESTLESS)
    id = await begun(shop, "exec python3 restless.py")
    for number in range(30):
        await shop.call("bash", command=f"echo {number} > own")
        assert (await shop.files())["own"] == f"{number}\n".encode()
    await asked(shop, id, "stop")
    for path, content in (await shop.files()).items():
        if path in {"e", "f", "g"}:
            assert content in {b"/etc/passwd", b""} or set(content) == set(b"y")
    assert "restless.py" in await shop.call("bash", command="rm -rf e f g; ls")


async def test_a_job_of_a_call_with_an_id_brings_back_all_that_comes_after_it(
    shop: ToolTenant,
) -> None:
    mark, bash = os.urandom(8).hex(), TOOLS["bash"]
    command = f"echo first > a; (: {mark}; sleep 0.3; echo later > b) &"
    asks = bash.parse_arguments({"command": command, "background": True})
    said = await bash.run(structs.replace(shop.context, call_id="one"), asks)
    await ended(shop, re.findall(r"call_[0-9a-f]{24}", str(said))[0])
    await until(lambda: not processes_marked(mark))
    await local(shop).close()
    assert await shop.files() == {"a": b"first\n", "b": b"later\n"}
