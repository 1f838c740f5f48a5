"""What becomes of an approval: each step a commit, with its event and its line in the audit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import delete_unchanged, iter_records, retry_while_busy
from carrel.core import approvals
from carrel.core.approvals import (
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    ToolResult,
    approval_event,
    approval_of,
    change_of,
    is_late,
    link_of,
)
from carrel.core.errors import Busy
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions import SpeakerRole
from carrel.core.store.record import CollectionRevision, Record, RecordType
from carrel.core.store.tree import Applied, Commit, ExpectationFailed
from carrel.ports import Ports

CARREL: Final = "carrel"
"""What the audit says did it, where nobody in particular did."""


async def in_status(ports: Ports, status: ApprovalStatus) -> AsyncIterator[Record]:
    """Those of all tenants, for whoever sees to them."""
    async for record in iter_records(ports, "", RecordType.APPROVAL, link_of(status=status)):
        yield record


async def cancel(ports: Ports, record: Record, reason: str) -> Approval:
    """Raises Taken for what has begun or is over, Busy where it changed meanwhile."""
    now = approvals.cancelled(approval_of(record), reason, ports.clock.now())
    await commit(ports, CARREL, f"cancel a call of {now.tool}", now, record.revision)
    return now


async def begin(ports: Ports, record: Record, seen: Sequence[CollectionRevision]) -> Approval:
    """Take an approved call to run it: nobody else will. Raises Busy and Taken.

    It is refused if any of the ``seen`` records has changed, on which the decision rests.
    """
    now = approvals.start(approval_of(record), ports.clock.now())
    await commit(ports, CARREL, f"run a call of {now.tool}", now, record.revision, seen)
    return now


async def finish(ports: Ports, tenant: str, id: str, result: ToolResult) -> None:
    """Note what came of a call that was run. What is over stays as it is."""

    async def attempt() -> None:
        [record] = await ports.records.get(tenant, RecordType.APPROVAL, [id])
        if record is None or record.body["status"] != ApprovalStatus.RUNNING:
            return
        text = (await load_rules(ports, tenant)).redact_text(result.content)
        kept = result if text == result.content else ToolResult(text, result.is_error)
        now = approvals.finished(approval_of(record), kept, ports.clock.now())
        await commit(ports, CARREL, f"finish a call of {now.tool}", now, record.revision)

    await retry_while_busy(attempt)


async def expire(ports: Ports, record: Record) -> None:
    """Close what nobody has answered in time; for all else there is time left. Raises Busy."""
    was = approval_of(record)
    if is_late(was, ports.clock.now()):
        now = approvals.expired(was, ports.clock.now())
        await commit(ports, CARREL, f"give up a call of {now.tool}", now, record.revision)


async def retire(ports: Ports, before: TimestampMs) -> int:
    """Forget approvals that were over before then; how many. The audit still tells of them."""
    old = [
        record
        for status in ApprovalStatus
        if not TRANSITIONS[status]
        async for record in in_status(ports, status)
        if (approval_of(record).ended or 0) < before
    ]
    return await delete_unchanged(ports, CARREL, "forget approvals that are over", old)


def arguments_of(ports: Ports, approval: Approval) -> Mapping[str, Any]:
    """As they were given. Raises Corrupt."""
    opened = ports.vault.open(approval.sealed, context(approval.tenant, approval.id))
    given: Mapping[str, Any] = msgspec.json.decode(opened)
    return given


async def is_superseded(ports: Ports, approval: Approval) -> bool:
    """Whether a person has said something in its session since it was asked."""
    if approval.session is None:
        return False
    after = approval.said
    while said := await ports.sessions.read(approval.tenant, approval.session, after=after):
        if any(one.role is SpeakerRole.USER for one in said):
            return True
        after = said[-1].sequence
    return False


async def commit(
    ports: Ports,
    author: str,
    reason: str,
    approval: Approval,
    expected: int,
    seen: Sequence[CollectionRevision] = (),
) -> None:
    """Let it become so, with what is told of it, if it still is as expected. Raises Busy."""
    wanted = Commit(
        (),
        author,
        reason,
        ports.clock.now(),
        collection_revisions=tuple(seen),
        changes=(change_of(approval, expected),),
        run=approval.run,
        events=approval_event(approval),
    )
    [outcome] = await ports.trees.commit([wanted])
    if isinstance(outcome, Applied):
        return
    assert isinstance(outcome, ExpectationFailed)
    raise Busy(f"the approval {approval.id} was changed by another at the same time")


def context(tenant: str, id: str) -> str:
    """What sealed arguments are bound to: they open nowhere else."""
    return f"approval/{tenant}/{id}"
