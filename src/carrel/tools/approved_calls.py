"""Running what was approved: once, by whichever process takes it first, and by nobody else.

A process that takes a call notes it before it begins, and shows from then on that it lives. Where
it died, the call is not begun again: nobody knows how far it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.accounts.credentials import actor_now
from carrel.actions.approvals import transitions
from carrel.actions.records import collection_revisions, find, retry_while_busy
from carrel.core.approvals import (
    INTERRUPTED,
    SUPERSEDED,
    Approval,
    ApprovalStatus,
    ToolResult,
    approval_of,
)
from carrel.core.errors import Busy, Conflict, Refusal, Unauthenticated, ValidationError
from carrel.core.store.record import Record, RecordType
from carrel.ports import CorruptContent, Ports
from carrel.ports.logging import log_of
from carrel.tools.calls import check_call, execute, find_tool, open_tool_context
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

AT_ONCE: Final = 16
_LOOK: Final = 5.0
_GRACE: Final = 10.0
"""Seconds that calls have to come to an end when the process is told to."""
_RESTS_ON: Final = (
    RecordType.AGENT,
    RecordType.SANDBOX,
    RecordType.WORKSPACE,
    RecordType.KEY,
    RecordType.PERSON,
)
_log = log_of("carrel.approvals")


class PreparedCall(Struct, frozen=True):
    """A call that was found to be what was asked for."""

    sitting: ToolContext
    tool: Tool
    asked: ToolArguments


async def run_approvals(ports: Ports, stop: asyncio.Event) -> None:
    """Run what is approved, and close what nobody answers, until told to stop."""
    worker = ApprovedCallWorker(ports)
    try:
        while not stop.is_set():
            ports.approvals.approved.clear()
            try:
                await worker.poll()
            except Exception as problem:
                _log.warning("approvals are held up", error=type(problem).__name__)
            await _first(min(_LOOK, ports.approvals.lease / 1000), stop, ports.approvals.approved)
    finally:
        await worker.finish()


async def resume(ports: Ports, tenant: str, id: str) -> None:
    """Run an approved call to its end, here and now, unless another has taken it."""
    if ready := await _claim(ports, tenant, id):
        await _run_and_record(ports, tenant, id, ready)


async def _first(seconds: float, *events: asyncio.Event) -> None:
    """Return when one of these is set or the time is over."""
    waits = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


class ApprovedCallWorker:
    """Those calls that this process runs, a bounded number at a time."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def poll(self) -> None:
        """See to all that are open."""
        async for record in transitions.in_status(self._ports, ApprovalStatus.APPROVED):
            if len(self._busy) < AT_ONCE and record.id not in self._busy:
                self._set_out(record)
        async for record in transitions.in_status(self._ports, ApprovalStatus.RUNNING):
            if record.id not in self._busy:
                await close_if_abandoned(self._ports, record)
        async for record in transitions.in_status(self._ports, ApprovalStatus.REQUESTED):
            with suppress(Busy):  # somebody else saw to it, or somebody answered
                await transitions.expire(self._ports, record)

    def _set_out(self, record: Record) -> None:
        task = asyncio.create_task(self._go(record))
        self._busy[record.id] = task
        task.add_done_callback(lambda _: self._busy.pop(record.id))

    async def _go(self, record: Record) -> None:
        try:
            await resume(self._ports, record.tenant, record.id)
            if len(self._busy) >= AT_ONCE:
                self._ports.approvals.approved.set()  # others may have waited for a free hand
        except Exception as problem:
            error = type(problem).__name__
            _log.warning("an approved call is held up", approval=record.id, error=error)

    async def finish(self) -> None:
        """Let those that run come to an end, but not for long."""
        tasks = set(self._busy.values())
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def close_if_abandoned(ports: Ports, record: Record) -> None:
    """Finish a call whose process shows no sign of life; what it did is not known."""
    [seen] = await ports.records.last_used([record.id])
    last = max(seen or 0, approval_of(record).started or 0)
    if ports.clock.now() > last + ports.approvals.lease:
        cut = ToolResult(f"Error: {INTERRUPTED}", True)
        await transitions.finish(ports, record.tenant, record.id, cut)


async def _claim(ports: Ports, tenant: str, id: str) -> PreparedCall | None:
    """Take a call to run it, if it is approved and still is what was asked for.

    What it is decided from is expected unchanged by the commit that takes it.
    """

    async def attempt() -> PreparedCall | None:
        seen = await collection_revisions(ports, tenant, _RESTS_ON)
        [record] = await ports.records.get(tenant, RecordType.APPROVAL, [id])
        if record is None or record.body["status"] != ApprovalStatus.APPROVED:
            return None
        try:
            ready = await _prepared(ports, approval_of(record))
        except Busy:
            raise
        except (Refusal, CorruptContent) as gone:
            await transitions.cancel(ports, record, str(gone))
            return None
        await transitions.begin(ports, record, seen)
        return ready

    return await retry_while_busy(attempt)


async def _prepared(ports: Ports, approval: Approval) -> PreparedCall:
    """The call as it would be made now. Raises a Refusal that names what has changed."""
    if await transitions.is_superseded(ports, approval):
        raise Conflict(SUPERSEDED)
    await find(ports, approval.tenant, RecordType.AGENT, approval.agent)
    try:
        actor = await actor_now(ports, approval.asker.actor(approval.tenant))
    except Unauthenticated:
        raise Conflict("the credential that asked for it is there no more") from None
    context = await open_tool_context(
        ports,
        actor,
        approval.agent,
        scope=approval.mode,
        session=approval.session,
        run=approval.run,
    )
    context = replace(context, call=approval.call)
    tool = await find_tool(context, approval.tool)
    asked, gate = await check_call(context, tool, transitions.arguments_of(ports, approval))
    _must_match(approval, gate)
    return PreparedCall(context, tool, asked)


def _must_match(approval: Approval, gate: ApprovalCheck) -> None:
    if gate.workspace != approval.workspace:
        raise ValidationError(
            f"it would work in workspace {gate.workspace}, not {approval.workspace}"
        )
    if gate.sandbox != approval.sandbox:
        raise ValidationError(f"it would run in sandbox {gate.sandbox}, not {approval.sandbox}")
    if gate.revision != approval.sandbox_revision:
        raise ValidationError(f"sandbox {gate.sandbox} has changed since it was asked")


async def _run_and_record(ports: Ports, tenant: str, id: str, ready: PreparedCall) -> None:
    """Run it and note what came of it, whatever that was."""
    result = ToolResult(f"Error: {INTERRUPTED}", True)
    try:
        async with _heartbeat(ports, id):
            reply = await execute(ready.sitting, ready.tool, ready.asked)
        result = ToolResult(reply.content, reply.is_error, reply.structured)
    except Exception as problem:
        _log.error("an approved call failed", approval=id, error=type(problem).__name__)
        result = ToolResult("Error: something went wrong here, and it is not run again", True)
    finally:
        await asyncio.shield(transitions.finish(ports, tenant, id, result))


@asynccontextmanager
async def _heartbeat(ports: Ports, id: str) -> AsyncIterator[None]:
    """Show from time to time that this process lives."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(ports.approvals.lease / 3000)
            with suppress(Exception):  # the next beat may come through
                await ports.records.mark_used({id: ports.clock.now()})

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])
