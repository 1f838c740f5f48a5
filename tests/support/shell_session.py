"""Carrel with a fake ``bash`` tool that appends a line to a file.

As a program it is ``carrel``; an idle one accepts answers and runs no approved call.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as File

from tests.support.server_process import TOKEN
from tests.support.shell_commands import SANDBOX_CONFIG, Command, check_approval, store_record

import carrel
from carrel.cli import main as cli
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.tools import calls
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import Tool, ToolContext
from carrel.wiring import background

ROOT = File(__file__).parents[2]
_IMPORT = "from tests.support.shell_session import main"
_START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {_IMPORT}; main("
WORKING = f"{_START})"
IDLE = f"{_START}idle=True)"


def _write(file: str) -> None:
    with open(file, "a", encoding="utf-8") as out:
        out.write("ran\n")
        out.flush()
        os.fsync(out.fileno())


async def _run(context: ToolContext, arguments: Command) -> object:
    """``hold FILE`` writes its line and never ends."""
    verb, _, file = arguments.command.partition(" ")
    _write(file)
    if verb == "hold":
        await asyncio.Event().wait()
    return "written"


async def _run_nothing(ports: Ports, stop: asyncio.Event) -> None:
    await stop.wait()


def main(*, idle: bool = False) -> None:
    tool = Tool("bash", "Runs.", Command, _run, writes=True, approval_check=check_approval)
    others = (tool for tool in ALL_TOOLS if tool.name not in calls.WORKSPACE_TOOLS)
    calls.ALL_TOOLS = (*others, tool)  # type: ignore[attr-defined]  # in this process only
    if idle:
        background.run_approvals = _run_nothing  # type: ignore[attr-defined]  # as above
    cli()


async def create_agent_with_approvals(location: str | File, **settings: str) -> None:
    """Create an agent whose commands need approval, and an owner with TOKEN."""
    async with carrel.open(location, owner_token=TOKEN, **settings) as client:
        tenant = (await client.tenants.me()).id
        config = {"permissionMode": "ask"}
        await store_record(
            client._ports, tenant, RecordType.SANDBOX, SANDBOX_CONFIG["sandbox"], config
        )
        await client.agents.create("kate", "Kate", config=SANDBOX_CONFIG)
