"""Background commands: start, status, end and isolation."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import jsonschema
import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import TOOLS, ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import PersistentUnsandboxedProvider

from carrel.core.errors import CapabilityNotProvided, NotFound, ValidationError
from carrel.core.store.record import RecordType
from carrel.tools.tool import ToolReply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tools(tmp_path: File) -> AsyncIterator[ToolTenant]:
    async with open_ports(tmp_path) as opened:
        runner = PersistentUnsandboxedProvider()
        yield await create_tool_tenant(opened, runner=runner, persistent=True)
        await runner.close()


async def start_job(tools: ToolTenant, command: str) -> str:
    output = await tools.call("bash", command=command, background=True)
    [id] = re.findall(
        r"\AStarted in the background; use async_status with statusId (call_[0-9a-f]{24})\Z", output
    )
    return str(id)


async def get_status(tools: ToolTenant, id: str, action: str = "status") -> Any:
    tool = TOOLS["async_status"]
    reply = await tool.run(tools.context, tool.parse_arguments({"statusId": id, "action": action}))
    assert isinstance(reply, ToolReply)
    jsonschema.validate(reply.structured, tool.output_schema)
    return reply.content if action == "logs" else json.loads(reply.content)


async def wait_for_job(tools: ToolTenant, id: str) -> None:
    runner = tools.runner
    assert isinstance(runner, PersistentUnsandboxedProvider)
    for (_, job_id), process in runner.processes.items():
        if job_id == id:
            await process.wait()


async def test_a_background_command_reports_its_status_and_output(tools: ToolTenant) -> None:
    good, bad = await start_job(tools, "echo done"), await start_job(tools, "printf oh; exit 3")
    await wait_for_job(tools, good)
    await wait_for_job(tools, bad)
    assert await get_status(tools, good) == {"status": "completed", "response": "done\n"}
    assert await get_status(tools, bad) == {"status": "failed", "error": "oh\n[exit code 3]"}
    assert await get_status(tools, good, "logs") == "done\n"


async def test_a_running_background_command_can_be_stopped(tools: ToolTenant) -> None:
    id = await start_job(tools, "exec sleep 600")
    assert await get_status(tools, id) == {"status": "processing", "jobId": id}
    assert await get_status(tools, id, "stop") == {"status": "failed", "error": "[exit code 143]"}


async def test_a_job_is_not_found_from_another_session_or_agent(tools: ToolTenant) -> None:
    id = await start_job(tools, "true")
    context = tools.context
    unreached = {**tools.agent.body, "config": {}}
    for other in (
        structs.replace(context, session="another"),
        structs.replace(context, agent=structs.replace(tools.agent, id="agt_other")),
        structs.replace(context, agent=structs.replace(tools.agent, body=unreached)),
    ):
        tools.context = other
        with pytest.raises(NotFound, match=f"no async result found for {id}"):
            await get_status(tools, id)
    tools.context = context
    for wrong in ("call_" + "0" * 24, "a\0b", "x" * 5000):
        with pytest.raises(NotFound, match="no async result found for "):
            await get_status(tools, wrong)
    with pytest.raises(ValidationError, match="statusId is required"):
        await get_status(tools, " ")


async def test_a_refused_job_is_not_recorded(tools: ToolTenant) -> None:
    tools.runner.refusal = "ten are running"
    with pytest.raises(CapabilityNotProvided, match="Sandbox setup failed: ten are running"):
        await tools.call("bash", command="true", background=True)
    assert await tools.ports.records.list(tools.owner.tenant, RecordType.JOB) == ()


async def test_background_commands_need_a_persistent_sandbox(tmp_path: File) -> None:
    async with open_ports(tmp_path) as opened:
        tools = await create_tool_tenant(opened, runner=PersistentUnsandboxedProvider())
        with pytest.raises(ValidationError, match="background jobs require a persistent"):
            await tools.gate("bash", command="true", background=True)
