"""A server whose commands take turns, over REST and MCP in every local tier."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.escape_harness import processes_marked
from tests.support.server_process import serving
from tests.support.wait import wait_until

pytestmark = pytest.mark.anyio
BASH = "/v1/agents/kate/tools/bash"
MCP = "/mcp/agents/kate"
JSON_AND_STREAM = {"Accept": "application/json, text/event-stream"}


async def create_agent(http: httpx.AsyncClient) -> None:
    config = {"provider": "local", "permissionMode": "bypass", "timeout": 300}
    sandbox = await http.post("/accounts/me/sandboxes", json={"name": "box", "config": config})
    body = {"slug": "kate", "name": "Kate", "config": {"sandbox": sandbox.json()["sandboxId"]}}
    (await http.post("/v1/agents", json=body)).raise_for_status()


def run(http: httpx.AsyncClient, command: str, **more: str) -> asyncio.Task[httpx.Response]:
    body = {"arguments": {"command": command}, **more}
    return asyncio.create_task(http.post(BASH, json=body))


def run_over_mcp(http: httpx.AsyncClient, command: str) -> asyncio.Task[httpx.Response]:
    call = {"name": "bash", "arguments": {"command": command}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return asyncio.create_task(http.post(MCP, json=body, headers=JSON_AND_STREAM))


async def metric(http: httpx.AsyncClient, name: str) -> float:
    lines = (await http.get("/metrics")).text.splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith(f"carrel_commands_{name} ")]
    return float(value)


async def wait_for(http: httpx.AsyncClient, name: str, expected: float) -> None:
    async def is_expected() -> bool:
        return await metric(http, name) == expected

    await wait_until(is_expected, f"{name} is {expected}")


def tool_error(response: httpx.Response) -> Any:
    result = response.json()["result"]
    return result["isError"], result["content"][0]["text"]


async def leave_two_processes(
    http: httpx.AsyncClient, start: Callable[..., asyncio.Task[httpx.Response]]
) -> None:
    """Disconnect from a command with two processes, and wait until both have ended."""
    mark = os.urandom(8).hex()
    sleep = f"exec -a {mark[:4]}''{mark[4:]} sleep 600"
    calling = start(http, f"({sleep}) & ({sleep})")
    await wait_until(lambda: len(processes_marked(mark)) >= 2, "both run")
    calling.cancel()
    await wait_until(lambda: not processes_marked(mark), "both are stopped")
    await wait_for(http, "running", 0)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_commands_wait_are_refused_and_leave_when_their_caller_does(
    tmp_path: File, tier: str
) -> None:
    settings: Any = {"sandbox": tier, "sandbox_commands": "1", "sandbox_waiting": "1"}
    mark = os.urandom(8).hex()
    with serving(tmp_path, **settings) as live:
        async with live.http() as http:
            await create_agent(http)
            first = run(http, f"exec -a {mark[:4]}''{mark[4:]} sleep 600")
            await wait_until(lambda: bool(processes_marked(mark)), "the first command runs")
            for start in (run, run_over_mcp):
                waiting = start(http, "echo never")
                await wait_for(http, "waiting", 1)
                refused = await run(http, "echo never")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
                assert refused.json()["error"] == "too_many_commands"
                is_error, text = tool_error(await run_over_mcp(http, "echo never"))
                assert is_error
                assert "nothing was run" in text
                waiting.cancel()
                await wait_for(http, "waiting", 0)
            last = run(http, "echo last")
            await wait_for(http, "waiting", 1)
            assert await metric(http, "running") == 1
            [process] = processes_marked(mark)
            os.kill(int(process.split()[0]), signal.SIGKILL)
            assert (await last).json()["content"] == "last\n"
            assert (await first).status_code == 200
            assert [await metric(http, name) for name in ("started_total", "refused_total")] == [
                2,
                4,
            ]
            assert await metric(http, "waited_seconds_total") > 0
            await wait_for(http, "running", 0)


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_a_command_whose_caller_leaves_is_stopped_unless_its_result_can_be_asked_for(
    tmp_path: File, tier: str
) -> None:
    settings: Any = {"sandbox": tier, "sandbox_commands": "1"}
    with serving(tmp_path, **settings) as live:
        async with live.http() as http:
            await create_agent(http)
            for start in (run, run_over_mcp):
                await leave_two_processes(http, start)
            mark = os.urandom(8).hex()
            command = f"(exec -a {mark[:4]}''{mark[4:]} sleep 600); echo done"
            calling = run(http, command, callId="kept")
            await wait_until(lambda: bool(processes_marked(mark)), "it runs")
            calling.cancel()
            await wait_for(http, "running", 1)
            [process] = processes_marked(mark)
            os.kill(int(process.split()[0]), signal.SIGKILL)
            await wait_for(http, "running", 0)
            repeated = await run(http, command, callId="kept")
            assert repeated.json()["structured"]["stdout"] == "done\n", repeated.text
