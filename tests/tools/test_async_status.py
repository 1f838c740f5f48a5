"""Commands in the background: started, asked for, ended, and nobody else's."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import TOOLS, ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import PersistentUnsandboxedProvider

from carrel.core.errors import CapabilityNotProvided, NotFound, ValidationError
from carrel.core.store.record import RecordType

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def shop(tmp_path: File) -> AsyncIterator[ToolTenant]:
    async with open_ports(tmp_path) as opened:
        runner = PersistentUnsandboxedProvider()
        yield await create_tool_tenant(opened, runner=runner, persistent=True)
        await runner.close()


async def begun(shop: ToolTenant, command: str) -> str:
    said = await shop.call("bash", command=command, background=True)
    [id] = re.findall(
        r"\AStarted in the background; use async_status with statusId (call_[0-9a-f]{24})\Z", said
    )
    return str(id)


async def asked(shop: ToolTenant, id: str, action: str = "status") -> Any:
    tool = TOOLS["async_status"]
    return await tool.run(shop.context, tool.parse_arguments({"statusId": id, "action": action}))


async def ended(shop: ToolTenant, id: str) -> None:
    runner = shop.runner
    assert isinstance(runner, PersistentUnsandboxedProvider)
    for (_, known), process in runner.processes.items():
        if known == id:
            await process.wait()


async def test_a_command_goes_on_and_is_asked_for(shop: ToolTenant) -> None:
    good, bad = await begun(shop, "echo done"), await begun(shop, "printf oh; exit 3")
    await ended(shop, good)
    await ended(shop, bad)
    assert await asked(shop, good) == {"status": "completed", "response": "done\n"}
    assert await asked(shop, bad) == {"status": "failed", "error": "oh\n[exit code 3]"}
    assert await asked(shop, good, "logs") == "done\n"


async def test_a_command_that_goes_on_is_stopped(shop: ToolTenant) -> None:
    id = await begun(shop, "exec sleep 600")
    assert await asked(shop, id) == {"status": "processing", "jobId": id}
    assert await asked(shop, id, "stop") == {"status": "failed", "error": "[exit code 143]"}


async def test_another_conversation_or_agent_knows_nothing_of_it(shop: ToolTenant) -> None:
    id = await begun(shop, "true")
    context = shop.context
    unreached = {**shop.agent.body, "config": {}}
    for other in (
        structs.replace(context, session="another"),
        structs.replace(context, agent=structs.replace(shop.agent, id="agt_other")),
        structs.replace(context, agent=structs.replace(shop.agent, body=unreached)),
    ):
        shop.context = other
        with pytest.raises(NotFound, match=f"no async result found for {id}"):
            await asked(shop, id)
    shop.context = context
    for wrong in ("call_" + "0" * 24, "a\0b", "x" * 5000):
        with pytest.raises(NotFound, match="no async result found for "):
            await asked(shop, wrong)
    with pytest.raises(ValidationError, match="statusId is required"):
        await asked(shop, " ")


async def test_what_is_refused_is_not_remembered(shop: ToolTenant) -> None:
    shop.runner.refusal = "ten are running"
    with pytest.raises(CapabilityNotProvided, match="Sandbox setup failed: ten are running"):
        await shop.call("bash", command="true", background=True)
    assert await shop.ports.records.list(shop.owner.tenant, RecordType.JOB) == ()


async def test_only_a_persistent_sandbox_lets_commands_go_on(tmp_path: File) -> None:
    async with open_ports(tmp_path) as opened:
        shop = await create_tool_tenant(opened, runner=PersistentUnsandboxedProvider())
        with pytest.raises(ValidationError, match="background jobs require a persistent"):
            await shop.gate("bash", command="true", background=True)
