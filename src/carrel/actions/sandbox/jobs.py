"""Background jobs: commands that outlive the call that started them.

A job is recorded before it starts. Only the agent and session that started it can see it, while
the agent has the same workspace through the same sandbox. The process that holds the instance
commits the job's file changes when it ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.records import commit_changes, delete_unchanged, iter_records
from carrel.actions.sandbox import write_back
from carrel.actions.sandbox.command_inputs import load_inputs
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.sandbox.command_report import was_interrupted
from carrel.core.sandbox.tool_access import ToolAccess
from carrel.core.store.record import Record, RecordChange, RecordType, decode_body, encode_body
from carrel.ports import Ports
from carrel.ports.logging import get_logger
from carrel.ports.sandbox import (
    EXIT_LOST,
    EXIT_STOPPED,
    BackgroundJob,
    CommandSpec,
    InspectInstance,
    PersistentSandbox,
    SandboxUnavailable,
    WriteBack,
)

_JOB_ID: Final = re.compile(r"call_[0-9a-f]{24}")
_log = get_logger("carrel.jobs")
LOST_OUTPUT: Final = b"[lost: its sandbox instance no longer exists]"
NEEDS_PERSISTENT_SANDBOX: Final = "background jobs require a persistent workspace sandbox"


class JobRecord(Struct, frozen=True):
    """Stored facts of a job besides its status."""

    agent: str
    session: str | None
    workspace: str
    sandbox: str
    provider: str
    instance_key: str
    mode: Audience = Audience.MAIN
    """Audience of the session that started it; a shared session sees no others."""


class JobCaller(Struct, frozen=True):
    """Agent, session and audience that ask for a job."""

    tenant: str
    agent: str
    session: str | None
    audience: Audience

    def can_see(self, job_record: JobRecord) -> bool:
        is_own = (job_record.agent, job_record.session) == (self.agent, self.session)
        return is_own and (self.audience is Audience.MAIN or job_record.mode is self.audience)


async def start_job(
    ports: Ports, actor: Actor, job_record: JobRecord, command: CommandSpec
) -> None:
    """Record and start a job.

    Raises ValidationError if the provider is not persistent, Conflict if too many jobs of the
    tenant run, and SandboxUnavailable.
    """
    provider = _persistent_provider(ports, job_record)

    async def is_running() -> bool:
        job = await provider.get_job(job_record.instance_key, command.id)
        return job is not None and job.exit_code is None

    async with ports.command_slots.count_job(actor.tenant, command.id, is_running):
        await _record_and_start(ports, actor, job_record, command)


async def _record_and_start(
    ports: Ports, actor: Actor, job_record: JobRecord, command: CommandSpec
) -> None:
    provider = _persistent_provider(ports, job_record)
    body = encode_body(job_record)
    change = RecordChange(
        actor.tenant, RecordType.JOB, command.id, body, 0, index_keys=(f"agent:{job_record.agent}",)
    )
    await commit_changes(ports, actor, "start a job", [change])
    try:
        await provider.start(command, ports.blobs)
    except SandboxUnavailable:
        removal = RecordChange(actor.tenant, RecordType.JOB, command.id, None)
        await commit_changes(ports, actor, "delete a job that was refused", [removal])
        raise


async def get_job(
    ports: Ports,
    caller: JobCaller,
    tool_access: ToolAccess,
    id: str,
) -> JobRecord:
    """Get a job. Raises NotFound, also for a job of another agent or session."""
    record = (
        _JOB_ID.fullmatch(id) and (await ports.records.get(caller.tenant, RecordType.JOB, [id]))[0]
    )
    if not record:
        raise _not_found(id)
    job_record = decode_body(record, JobRecord)
    attached = {
        (workspace.workspace, workspace.sandbox.id)
        for workspace in tool_access.workspaces
        if workspace.sandbox
    }
    if not caller.can_see(job_record) or (job_record.workspace, job_record.sandbox) not in attached:
        raise _not_found(id)
    return job_record


async def load_job_status(
    ports: Ports, job_record: JobRecord, id: str, *, stop: bool = False
) -> BackgroundJob:
    """Return the status of a job, after stopping it if `stop`.

    A job that its provider no longer has was lost with its instance.
    """
    provider = _persistent_provider(ports, job_record)
    query = provider.stop_job if stop else provider.get_job
    return await query(job_record.instance_key, id) or BackgroundJob(id, EXIT_LOST, LOST_OUTPUT)


async def delete_ended(ports: Ports, before: TimestampMs) -> int:
    """Delete ended jobs created before a time; return how many."""
    ended: list[Record] = []
    async for record in iter_records(ports, "", RecordType.JOB):
        if record.created_at < before and await _delete_if_ended(ports, record):
            ended.append(record)
    return await delete_unchanged(ports, "carrel", "delete ended jobs", ended)


async def _delete_if_ended(ports: Ports, record: Record) -> bool:
    """Delete the provider's job data; False if the job is still running."""
    job_record = decode_body(record, JobRecord)
    provider = ports.sandboxes.get(job_record.provider)
    if isinstance(provider, PersistentSandbox):
        job = await provider.get_job(job_record.instance_key, record.id)
        if job is not None and job.exit_code is None:
            return False
        await provider.delete_job(job_record.instance_key, record.id)
    return True


def write_back_callback(workspace: WorkspaceFiles, id: str, command_note: str) -> WriteBack:
    """Return the callback that commits the file changes of a background job.

    `command_note` ends the reason of the commits. They need no idempotency key: the instance tracks
    which changes it handed out.
    """
    workspace = replace(workspace, call=None, name=None)

    async def write_back_files(look: InspectInstance, job: BackgroundJob | None) -> Sequence[str]:
        reason = f"bash (background{_partial_note(job)}) {id}{command_note}"
        try:
            inputs = await load_inputs(workspace)
            async with look(inputs.files, inputs.directories, inputs.root) as result:
                committed = await write_back.commit_changes(workspace, inputs, result, id, reason)
                return (*result.notes, *committed.notes)
        except Refusal as problem:
            _log.warning("changes not saved", workspace=workspace.workspace, call=id)
            return (f"[the changes were not saved: {problem}]",)
        except Exception as problem:
            kind = type(problem).__name__
            _log.error("changes not saved", workspace=workspace.workspace, call=id, problem=kind)
            raise

    return write_back_files


def _partial_note(job: BackgroundJob | None) -> str:
    if (
        job is None
        or job.exit_code == EXIT_STOPPED
        or was_interrupted(job.exit_code, timed_out=False)
    ):
        return ", partial"
    return ""


def _persistent_provider(ports: Ports, job_record: JobRecord) -> PersistentSandbox:
    provider = ports.sandboxes.get(job_record.provider)
    if not isinstance(provider, PersistentSandbox):
        raise ValidationError(NEEDS_PERSISTENT_SANDBOX)
    return provider


def _not_found(id: str) -> NotFound:
    return NotFound(f"no async result found for {id[:80]}")
