"""Commands in an agent's sandbox, over every driver: output, limits and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.drivers import Awaited

from carrel_client.drivers import Steps, await_steps
from carrel_client.runtimes.commands import (
    CommandRefused,
    CompletedCommand,
    NotAttached,
    run_command,
    workspace_arguments,
)

pytestmark = pytest.mark.anyio


def unwrapped(resource: Any) -> Any:
    return resource._resource if isinstance(resource, Awaited) else resource


@pytest.fixture
async def workspace(api: Any) -> Any:
    """A workspace of the agent ada, whose output is cut after 1 KiB."""
    config = {"permissionMode": "bypass", "outputLimitBytes": 1024}
    sandbox = await api.sandboxes.create("usual", config)
    record = await api.workspaces.create("site")
    attached = [{"name": "site", "workspaceId": record.id}]
    await api.agents.create("ada", config={"sandbox": sandbox.id, "workspaces": attached})
    return unwrapped(api).workspace(record.id)


async def run(files: Any, command: str, **arguments: Any) -> CompletedCommand:
    steps: Steps[CompletedCommand] = run_command(files, "ada", {"command": command, **arguments})
    return await await_steps(files._driver, steps)


async def test_result_has_both_streams_and_the_exit_code(workspace: Any) -> None:
    done = await run(workspace, "printf out; printf err >&2; exit 7")
    assert done == CompletedCommand("out", "err", 7, False, True)


async def test_output_that_was_cut_is_returned_whole(workspace: Any) -> None:
    done = await run(workspace, "seq 9000; seq 20 >&2")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 9001))
    assert (done.stderr.splitlines()[-1], done.is_complete) == ("20", True)


async def test_output_beyond_what_is_saved_is_incomplete(workspace: Any) -> None:
    done = await run(workspace, "head -c 1100000 /dev/zero | tr '\\0' x")
    assert not done.is_complete
    assert done.stdout.startswith("xxx")


async def test_command_that_is_killed_for_its_time_limit_says_so(workspace: Any) -> None:
    done = await run(workspace, "echo begun; sleep 30", timeout=1)
    assert (done.timed_out, done.exit_code, done.stdout) == (True, None, "begun\n")


async def test_invalid_command_is_refused_with_its_reason(workspace: Any) -> None:
    with pytest.raises(CommandRefused, match="timeout must be"):
        await run(workspace, "true", timeout=100_000)


async def test_workspace_is_named_where_the_agent_has_several(api: Any, workspace: Any) -> None:
    driver, first = workspace._driver, workspace._location[1]

    async def arguments(id: str) -> dict[str, str]:
        steps: Steps[dict[str, str]] = workspace_arguments(workspace, "ada", id)
        return await await_steps(driver, steps)

    assert await arguments(first) == {}
    second = (await api.workspaces.create("docs")).id
    with pytest.raises(NotAttached, match=second):
        await arguments(second)
    config = (await api.agents.get("ada")).config
    attached = [*config["workspaces"], {"name": "docs", "workspaceId": second}]
    await api.agents.change("ada", config={**config, "workspaces": attached})
    assert await arguments(second) == {"workspace": "docs"}
    await run(workspace, "echo hi > a.txt", **await arguments(second))
    assert await api.workspace(second).read_bytes("a.txt") == b"hi\n"
