"""Transitions of an approval, each one commit with its event and audit entry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import delete_unchanged, iter_records
from carrel.actions.retry import retry_on_conflict
from carrel.core import approvals
from carrel.core.access import Actor, author_and_key
from carrel.core.approvals import (
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    ToolResult,
    approval_change,
    approval_events,
    approval_from_record,
    approval_index_key,
    is_past_deadline,
)
from carrel.core.errors import Busy
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions.session import SpeakerRole
from carrel.core.store.commit import Applied, Commit, ExpectationFailed
from carrel.core.store.record import CollectionRevision, Record, RecordType
from carrel.ports import Ports

SERVER_AUTHOR: Final = "carrel"
"""Author of changes that the server makes by itself."""


async def iter_by_status(ports: Ports, status: ApprovalStatus) -> AsyncIterator[Record]:
    """Iterate over the approvals of all tenants in a status."""
    async for record in iter_records(
        ports, "", RecordType.APPROVAL, approval_index_key(status=status)
    ):
        yield record


async def cancel(ports: Ports, record: Record, reason: str) -> Approval:
    """Cancel a pending call.

    Raises Conflict if it has started or ended, and Busy if it changed concurrently.
    """
    cancelled = approvals.cancel_approval(approval_from_record(record), reason, ports.clock.now())
    await commit(
        ports, SERVER_AUTHOR, f"cancel a call of {cancelled.tool}", cancelled, record.revision
    )
    return cancelled


async def begin(
    ports: Ports, record: Record, expected_revisions: Sequence[CollectionRevision]
) -> Approval:
    """Claim an approved call in order to run it. Raises Busy and Conflict.

    Fails if any collection in `expected_revisions` changed.
    """
    started = approvals.start_approval(approval_from_record(record), ports.clock.now())
    await commit(
        ports,
        SERVER_AUTHOR,
        f"run a call of {started.tool}",
        started,
        record.revision,
        expected_revisions,
    )
    return started


@retry_on_conflict()
async def finish(ports: Ports, tenant: str, id: str, result: ToolResult) -> None:
    """Store the redacted result of a call. An approval that is not running stays as it is."""
    [record] = await ports.records.get(tenant, RecordType.APPROVAL, [id])
    if record is None:
        return
    running = approval_from_record(record)
    if running.status is not ApprovalStatus.RUNNING:
        return
    rules = await load_rules(ports, tenant)
    redacted = ToolResult(
        rules.redact_text(result.content), result.is_error, rules.redact_fields(result.structured)
    )
    finished = approvals.finish_approval(running, redacted, ports.clock.now())
    await commit(
        ports, SERVER_AUTHOR, f"finish a call of {finished.tool}", finished, record.revision
    )


async def expire(ports: Ports, record: Record) -> None:
    """Close an approval that was not answered in time, else do nothing. Raises Busy."""
    approval = approval_from_record(record)
    if is_past_deadline(approval, ports.clock.now()):
        expired = approvals.expire_approval(approval, ports.clock.now())
        await commit(
            ports, SERVER_AUTHOR, f"expire a call of {expired.tool}", expired, record.revision
        )


async def delete_closed(ports: Ports, before: TimestampMs) -> int:
    """Delete approvals closed before a time; return how many. Audit entries stay."""
    closed = [
        record
        for status in ApprovalStatus
        if not TRANSITIONS[status]
        async for record in iter_by_status(ports, status)
        if (approval_from_record(record).ended or 0) < before
    ]
    return await delete_unchanged(ports, SERVER_AUTHOR, "delete closed approvals", closed)


def open_arguments(ports: Ports, approval: Approval) -> Mapping[str, Any]:
    """Decrypt the arguments of the call. Raises CorruptContent."""
    decrypted = ports.vault.open(approval.sealed, seal_context(approval.tenant, approval.id))
    arguments: Mapping[str, Any] = msgspec.json.decode(decrypted)
    return arguments


async def load_shown_arguments(ports: Ports, approval: Approval) -> Mapping[str, Any]:
    """Return the arguments as a person may see them: redacted, whole while a decision is open.

    Values of environment variables are stored only sealed, and arguments only until then.
    """
    arguments = approval.redacted_arguments
    if approval.status is not ApprovalStatus.REQUESTED or "env" not in arguments:
        return arguments
    rules = await load_rules(ports, approval.tenant)
    return rules.redact_fields(dict(open_arguments(ports, approval)))


async def is_superseded(ports: Ports, approval: Approval) -> bool:
    """Return whether the session has a user message since the approval was requested."""
    if approval.session is None:
        return False
    after = approval.entry_count
    key = (approval.tenant, approval.agent, approval.session)
    while entries := await ports.sessions.read(*key, after=after):
        if any(entry.role is SpeakerRole.USER for entry in entries):
            return True
        after = entries[-1].sequence
    return False


async def commit(
    ports: Ports,
    author: Actor | str,
    reason: str,
    approval: Approval,
    expected: int,
    expected_revisions: Sequence[CollectionRevision] = (),
) -> None:
    """Commit the approval and its event if its revision is as expected. Raises Busy."""
    name, key = author_and_key(author)
    approval_commit = Commit(
        (),
        name,
        reason,
        ports.clock.now(),
        collection_revisions=tuple(expected_revisions),
        changes=(approval_change(approval, expected),),
        run=approval.run,
        events=approval_events(approval),
        key=key,
    )
    [outcome] = await ports.trees.commit([approval_commit])
    if isinstance(outcome, Applied):
        return
    assert isinstance(outcome, ExpectationFailed)
    raise Busy(f"approval {approval.id} was changed concurrently")


def seal_context(tenant: str, id: str) -> str:
    """Encryption context of the sealed arguments."""
    return f"approval/{tenant}/{id}"
