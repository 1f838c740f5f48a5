"""Asking for a command that goes on in the background."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.sandbox import jobs
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import LONGEST_OUTPUT
from carrel.ports.sandbox import BackgroundJob
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import encode_utf8


class Action(StrEnum):
    STATUS = "status"
    LOGS = "logs"
    STOP = "stop"


class Arguments(ToolArguments, frozen=True):
    status_id: Annotated[str, Meta(description="What bash called it.")] = field(name="statusId")
    action: Annotated[
        Action, Meta(description="How it is doing, what it printed last, or an end to it.")
    ] = Action.STATUS


async def _run(context: ToolContext, asked: Arguments) -> object:
    encode_utf8("statusId", asked.status_id)
    ports, id = context.ports, asked.status_id.strip()
    if not id:
        raise ValidationError("statusId is required")
    hands = await load_tool_access(ports, context.actor.tenant, context.config)
    tracked = await jobs.find_job(
        ports, context.actor, context.agent.id, context.session, hands, id
    )
    job = await jobs.job_status(ports, tracked, id, stop=asked.action is Action.STOP)
    log = job.log[-LONGEST_OUTPUT:].decode(errors="replace")
    return log if asked.action is Action.LOGS else _told(job, log)


def _told(job: BackgroundJob, log: str) -> dict[str, str]:
    if job.exit_code is None:
        return {"status": "processing", "jobId": job.id}
    if job.exit_code == 0:
        return {"status": "completed", "response": log}
    gap = "" if not log or log.endswith("\n") else "\n"
    return {"status": "failed", "error": f"{log}{gap}[exit code {job.exit_code}]"}


TOOL: Final = Tool(
    "async_status",
    "Tells how a command is doing that bash started in the background or what it printed last, or "
    "ends it. Files that it changed are there when it has ended.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
)
