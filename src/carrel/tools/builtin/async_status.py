"""Tool `async_status`: status, log or stop of a background command."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, field

from carrel.actions.sandbox import jobs
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import DEFAULT_RESULT_BYTES
from carrel.ports.sandbox import BackgroundJob
from carrel.tools.tool import (
    Tool,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)
from carrel.tools.workspace_tool import encode_utf8


class AsyncStatusAction(StrEnum):
    STATUS = "status"
    LOGS = "logs"
    STOP = "stop"


class AsyncStatusArguments(ToolArguments, frozen=True):
    status_id: Annotated[str, Meta(description="Id returned by bash.")] = field(name="statusId")
    action: Annotated[
        AsyncStatusAction,
        Meta(description="Get the status, get the latest output, or stop the command."),
    ] = AsyncStatusAction.STATUS


class JobResult(ToolResultFields, frozen=True, rename="camel"):
    """Status of a background command; with the action logs, its latest output."""

    status: Literal["processing", "completed", "failed"]
    job_id: str
    exit_code: int | None
    """None while the command runs."""
    output: str
    """Latest output, stdout and stderr together."""


async def _run(context: ToolContext, args: AsyncStatusArguments) -> ToolReply:
    encode_utf8("statusId", args.status_id)
    ports, id = context.ports, args.status_id.strip()
    if not id:
        raise ValidationError("statusId is required")
    access = await load_tool_access(ports, context.actor.tenant, context.config)
    caller = jobs.JobCaller(
        context.agent.tenant, context.agent.id, context.session, context.audience
    )
    record = await jobs.get_job(ports, caller, access, id)
    job = await jobs.load_job_status(ports, record, id, stop=args.action is AsyncStatusAction.STOP)
    log = job.log[-DEFAULT_RESULT_BYTES:].decode(errors="replace")
    code = job.exit_code
    status: Literal["processing", "completed", "failed"] = (
        "processing" if code is None else "failed" if code else "completed"
    )
    result = JobResult(status=status, job_id=job.id, exit_code=code, output=log)
    is_log = args.action is AsyncStatusAction.LOGS
    text = log if is_log else msgspec.json.encode(_job_to_json(job, log)).decode()
    return structured_reply(text, result)


def _job_to_json(job: BackgroundJob, log: str) -> dict[str, str]:
    if job.exit_code is None:
        return {"status": "processing", "jobId": job.id}
    if job.exit_code == 0:
        return {"status": "completed", "response": log}
    gap = "" if not log or log.endswith("\n") else "\n"
    return {"status": "failed", "error": f"{log}{gap}[exit code {job.exit_code}]"}


TOOL: Final = Tool(
    "async_status",
    "Returns the status or latest output of a command that bash started in the background, or "
    "stops it. Files it changed are available once it has ended.",
    AsyncStatusArguments,
    _run,
    writes=True,
    destructive=True,
    results=(JobResult,),
)
