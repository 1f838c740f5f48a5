"""Carrel with a stand-in for the tool that runs commands: it writes a line into a file.

As a program it is ``carrel``; an idle one takes answers, and runs nothing of what is approved.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as File

from tests.support.server_process import TOKEN
from tests.support.shell_commands import HERE, Command, gate, kept

import carrel
from carrel.cli import main as cli
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.tools import ALL, calls
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


async def _run(context: ToolContext, asked: Command) -> object:
    """``hold FILE`` never ends, once it has written its line."""
    verb, _, file = asked.command.partition(" ")
    _write(file)
    if verb == "hold":
        await asyncio.Event().wait()
    return "written"


async def _nobody(ports: Ports, stop: asyncio.Event) -> None:
    await stop.wait()


def main(*, idle: bool = False) -> None:
    tool = Tool("bash", "Runs.", Command, _run, writes=True, approval_check=gate)
    others = (tool for tool in ALL if tool.name not in calls.WORKSPACE_TOOLS)
    calls.ALL = (*others, tool)  # type: ignore[attr-defined]  # in this process alone
    if idle:
        background.run_approvals = _nobody  # type: ignore[attr-defined]  # as above
    cli()


async def furnish(where: str | File, **settings: str) -> None:
    """An agent whose commands somebody has to approve, of the owner whose token tests know."""
    async with carrel.open(where, owner_token=TOKEN, **settings) as desk:
        tenant = (await desk.tenants.me()).id
        config = {"permissionMode": "ask"}
        await kept(desk._ports, tenant, RecordType.SANDBOX, HERE["sandbox"], config)
        await desk.agents.create("kate", "Kate", config=HERE)
