"""Worker that runs approved tool calls at most once across all processes.

A process records the claim before it runs a call, and sends heartbeats while the call runs. If the
process dies, the call is not run again, since its progress is unknown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.accounts.credentials import reload_actor
from carrel.actions.approvals import transitions
from carrel.actions.records import get_record, load_collection_revisions
from carrel.actions.retry import retry_on_conflict
from carrel.core.approvals import (
    INTERRUPTED_REASON,
    SUPERSEDED_REASON,
    Approval,
    ApprovalStatus,
    ToolResult,
    approval_from_record,
)
from carrel.core.errors import Busy, Conflict, Refusal, Unauthenticated, ValidationError
from carrel.core.store.record import Record, RecordType
from carrel.ports import CorruptContent, Ports
from carrel.ports.logging import get_logger
from carrel.tools.calls import check_call, execute, find_tool, open_tool_context
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

MAX_CONCURRENT_CALLS: Final = 16
_POLL_SECONDS: Final = 5.0
_SHUTDOWN_SECONDS: Final = 10.0
"""Seconds that running calls have to finish at shutdown."""
_DEPENDENCY_TYPES: Final = (
    RecordType.AGENT,
    RecordType.SANDBOX,
    RecordType.WORKSPACE,
    RecordType.KEY,
    RecordType.PERSON,
)
_log = get_logger("carrel.approvals")


class PreparedCall(Struct, frozen=True):
    """A call that was checked against its approval and is ready to run."""

    context: ToolContext
    tool: Tool
    arguments: ToolArguments


async def run_approvals(ports: Ports, stop: asyncio.Event) -> None:
    """Run approved calls and expire unanswered ones until `stop` is set."""
    worker = ApprovedCallWorker(ports)
    try:
        while not stop.is_set():
            ports.approvals.approved_event.clear()
            try:
                await worker.poll()
            except Exception as error:
                _log.warning("approval worker failed; retrying", error=type(error).__name__)
            await _wait_first(
                min(_POLL_SECONDS, ports.approvals.lease_ms / 1000),
                stop,
                ports.approvals.approved_event,
            )
    finally:
        await worker.finish()


async def resume(ports: Ports, tenant: str, id: str) -> None:
    """Run an approved call to completion, unless another worker claimed it."""
    if prepared := await _claim(ports, tenant, id):
        await _run_and_record(ports, tenant, id, prepared)


async def _wait_first(seconds: float, *events: asyncio.Event) -> None:
    """Return when one of the events is set or the time is over."""
    tasks = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class ApprovedCallWorker:
    """Runs approved calls in this process, at most MAX_CONCURRENT_CALLS of a tenant at a time."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: Counter[str] = Counter()
        """Number of running calls by tenant."""

    async def poll(self) -> None:
        """Start approved calls, close abandoned ones and expire pending ones."""
        async for record in transitions.iter_by_status(self._ports, ApprovalStatus.APPROVED):
            if record.id not in self._tasks and not self._is_full(record.tenant):
                self._start(record)
        async for record in transitions.iter_by_status(self._ports, ApprovalStatus.RUNNING):
            if record.id not in self._tasks:
                await close_if_abandoned(self._ports, record)
        async for record in transitions.iter_by_status(self._ports, ApprovalStatus.REQUESTED):
            with suppress(Busy):  # another worker expired it, or it was answered
                await transitions.expire(self._ports, record)

    def _start(self, record: Record) -> None:
        task = asyncio.create_task(self._run(record))
        self._tasks[record.id] = task
        self._running[record.tenant] += 1

        def forget(_: object) -> None:
            del self._tasks[record.id]
            self._running -= Counter([record.tenant])  # keeps no zeros

        task.add_done_callback(forget)

    def _is_full(self, tenant: str) -> bool:
        return self._running[tenant] >= MAX_CONCURRENT_CALLS

    async def _run(self, record: Record) -> None:
        try:
            await resume(self._ports, record.tenant, record.id)
            if self._is_full(record.tenant):
                self._ports.approvals.approved_event.set()  # calls may be waiting for a free slot
        except Exception as exception:
            error_name = type(exception).__name__
            _log.warning(
                "approved call failed to start; retrying", approval=record.id, error=error_name
            )

    async def finish(self) -> None:
        """Wait up to _SHUTDOWN_SECONDS for running calls, then cancel them."""
        tasks = set(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=_SHUTDOWN_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def close_if_abandoned(ports: Ports, record: Record) -> None:
    """Close a running call whose heartbeat is older than the lease.

    Its effects are unknown.
    """
    [heartbeat] = await ports.records.last_used([record.id])
    last_alive = max(heartbeat or 0, approval_from_record(record).started or 0)
    if ports.clock.now() > last_alive + ports.approvals.lease_ms:
        result = ToolResult(f"Error: {INTERRUPTED_REASON}", True)
        await transitions.finish(ports, record.tenant, record.id, result)


@retry_on_conflict()
async def _claim(ports: Ports, tenant: str, id: str) -> PreparedCall | None:
    """Claim an approved call, or return None if it is not approved any more.

    The claiming commit expects every record the check read to be unchanged.
    """
    revisions = await load_collection_revisions(ports, tenant, _DEPENDENCY_TYPES)
    [record] = await ports.records.get(tenant, RecordType.APPROVAL, [id])
    if record is None:
        return None
    approval = approval_from_record(record)
    if approval.status is not ApprovalStatus.APPROVED:
        return None
    try:
        prepared = await _prepare(ports, approval)
    except Busy:
        raise
    except (Refusal, CorruptContent) as refusal:
        await transitions.cancel(ports, record, str(refusal))
        return None
    await transitions.begin(ports, record, revisions)
    return prepared


async def _prepare(ports: Ports, approval: Approval) -> PreparedCall:
    """Check the call as it would run now. Raises a Refusal that names what changed."""
    if await transitions.is_superseded(ports, approval):
        raise Conflict(SUPERSEDED_REASON)
    await get_record(ports, approval.tenant, RecordType.AGENT, approval.agent)
    try:
        actor = await reload_actor(ports, approval.asker.to_actor(approval.tenant))
    except Unauthenticated:
        raise Conflict("the credential that requested the call no longer exists") from None
    context = await open_tool_context(
        ports,
        actor,
        approval.agent,
        scope=approval.mode,
        session=approval.session,
        run=approval.run,
    )
    context = replace(
        context,
        call_id=approval.call,
        expected_version=approval.expected_version,
        is_approved=True,
    )
    tool = await find_tool(context, approval.tool)
    arguments, check = await check_call(context, tool, transitions.open_arguments(ports, approval))
    _require_unchanged(approval, check)
    return PreparedCall(context, tool, arguments)


def _require_unchanged(approval: Approval, check: ApprovalCheck) -> None:
    if check.workspace != approval.workspace:
        raise ValidationError(
            f"the call would now use workspace {check.workspace}, not {approval.workspace}"
        )
    if check.sandbox != approval.sandbox:
        raise ValidationError(
            f"the call would now use sandbox {check.sandbox}, not {approval.sandbox}"
        )
    if check.sandbox_config != approval.sandbox_config:
        raise ValidationError(f"sandbox {check.sandbox} changed since the approval was requested")


async def _run_and_record(ports: Ports, tenant: str, id: str, prepared: PreparedCall) -> None:
    """Run the call and record its result, also if it fails or is cancelled."""
    result = ToolResult(f"Error: {INTERRUPTED_REASON}", True)
    try:
        async with _heartbeat(ports, id):
            reply = await execute(prepared.context, prepared.tool, prepared.arguments)
        result = ToolResult(reply.content, reply.is_error, reply.structured)
    except Exception as error:
        _log.error("approved call failed", approval=id, error=type(error).__name__)
        result = ToolResult("Error: internal error; the call is not run again", True)
    finally:
        await asyncio.shield(transitions.finish(ports, tenant, id, result))


@asynccontextmanager
async def _heartbeat(ports: Ports, id: str) -> AsyncIterator[None]:
    """Update the call's heartbeat while the context is open."""

    async def renew_lease() -> None:
        while True:
            await asyncio.sleep(ports.approvals.lease_ms / 3000)
            with suppress(Exception):  # the next heartbeat may succeed
                await ports.records.mark_used({id: ports.clock.now()})

    task = asyncio.create_task(renew_lease())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
