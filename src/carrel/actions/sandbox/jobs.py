"""Commands that go on after the call that started them, and who may ask for them.

A job is written down before it begins. It is there for the agent and the conversation that started
it, for as long as the agent reaches the same workspace through the same sandbox; for all others it
is as if there were none. What it changed is brought back when it ends, by the process that holds
its instance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.records import commit_changes, delete_unchanged, iter_records
from carrel.actions.sandbox import write_back
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sandbox.command_report import was_cut_short
from carrel.core.sandbox.tool_access import ToolAccess
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports
from carrel.ports.logging import log_of
from carrel.ports.sandbox import (
    EXIT_LOST,
    EXIT_STOPPED,
    BackgroundJob,
    CommandSpec,
    Home,
    Look,
    PersistentSandbox,
    SandboxUnavailable,
)

_JOB: Final = re.compile(r"call_[0-9a-f]{24}")
_log = log_of("carrel.jobs")
GONE: Final = b"[lost: what it ran in is gone]"
NEEDS_PERSISTENT_SANDBOX: Final = "background jobs require a persistent workspace sandbox"


class JobRecord(Struct, frozen=True):
    """What is known of a job beside how it is doing."""

    agent: str
    session: str | None
    workspace: str
    sandbox: str
    provider: str
    reservation: str


async def begin(ports: Ports, actor: Actor, tracked: JobRecord, order: CommandSpec) -> None:
    """Raises Malformed where its provider keeps nothing, and Refused."""
    keeper = _keeper(ports, tracked)
    body = {name: getattr(tracked, name) for name in JobRecord.__struct_fields__}
    change = RecordChange(
        actor.tenant, RecordType.JOB, order.id, body, 0, index_keys=(f"agent:{tracked.agent}",)
    )
    await commit_changes(ports, actor.name, "start a job", [change])
    try:
        await keeper.start(order, ports.blobs.get)
    except SandboxUnavailable:
        gone = RecordChange(actor.tenant, RecordType.JOB, order.id, None)
        await commit_changes(ports, actor.name, "forget a job that was refused", [gone])
        raise


async def find_job(
    ports: Ports, actor: Actor, agent: str, session: str | None, hands: ToolAccess, id: str
) -> JobRecord:
    """Raises Missing, for one that is another's just as for one that never was."""
    known = _JOB.fullmatch(id) and (await ports.records.get(actor.tenant, RecordType.JOB, [id]))[0]
    if not known:
        raise _no_such(id)
    tracked = JobRecord(**known.body)
    reached = {(one.workspace, one.sandbox.id) for one in hands.workspaces if one.sandbox}
    theirs = (tracked.agent, tracked.session) != (agent, session)
    if theirs or (tracked.workspace, tracked.sandbox) not in reached:
        raise _no_such(id)
    return tracked


async def job_status(
    ports: Ports, tracked: JobRecord, id: str, *, stop: bool = False
) -> BackgroundJob:
    """How it is doing, once it is stopped where that is wanted.

    What its provider knows nothing of any more was lost with its instance.
    """
    keeper = _keeper(ports, tracked)
    verb = keeper.stop if stop else keeper.job
    return await verb(tracked.reservation, id) or BackgroundJob(id, EXIT_LOST, GONE)


async def retire(ports: Ports, before: TimestampMs) -> int:
    """Forget jobs that began before then and have ended; how many."""
    old: list[Record] = []
    async for record in iter_records(ports, "", RecordType.JOB):
        if record.created_at < before and await _let_go(ports, record):
            old.append(record)
    return await delete_unchanged(ports, "carrel", "forget jobs that have ended", old)


async def _let_go(ports: Ports, record: Record) -> bool:
    """Whether nothing is left of it to know."""
    tracked = JobRecord(**record.body)
    provider = ports.sandboxes.get(tracked.provider)
    if isinstance(provider, PersistentSandbox):
        job = await provider.job(tracked.reservation, record.id)
        if job is not None and job.exit_code is None:
            return False
        await provider.delete_job(tracked.reservation, record.id)
    return True


def write_back_callback(bench: WorkspaceFiles, id: str, command: str) -> Home:
    """How what a command leaves in its instance is brought back when nobody waits for it.

    It is brought back once without a receipt, since the instance knows what it has handed out.
    """
    bench = replace(bench, call=None, name=None)

    async def home(look: Look, job: BackgroundJob | None) -> Sequence[str]:
        reason = f"bash (background{_partial(job)}) {id}: {command}"
        try:
            start = await write_back.load_inputs(bench)
            async with look(start.files) as ran:
                known = await write_back.commit_changes(bench, start, ran, id, reason)
                return (*ran.notes, *known)
        except Refusal as problem:
            _log.warning("changes not kept", workspace=bench.workspace, call=id)
            return (f"[the changes were not kept: {problem}]",)
        except Exception as problem:
            kind = type(problem).__name__
            _log.error("changes not kept", workspace=bench.workspace, call=id, problem=kind)
            raise

    return home


def _partial(job: BackgroundJob | None) -> str:
    if (
        job is None
        or job.exit_code == EXIT_STOPPED
        or was_cut_short(job.exit_code, timed_out=False)
    ):
        return ", partial"
    return ""


def _keeper(ports: Ports, tracked: JobRecord) -> PersistentSandbox:
    provider = ports.sandboxes.get(tracked.provider)
    if not isinstance(provider, PersistentSandbox):
        raise ValidationError(NEEDS_PERSISTENT_SANDBOX)
    return provider


def _no_such(id: str) -> NotFound:
    return NotFound(f"no async result found for {id[:80]}")
