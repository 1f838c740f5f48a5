"""Approvals of tool calls: states, transitions, record and events.

A request is approved, denied, expired or cancelled. An approved call runs once and is then
finished; it is cancelled if its sandbox changed before it started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import Conflict, Expired
from carrel.core.hidden_characters import show_hidden_characters
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.store.event import (
    APPROVAL_ANSWERED,
    APPROVAL_EXPIRED,
    APPROVAL_FINISHED,
    APPROVAL_REQUESTED,
    EventDraft,
)
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

ID_PREFIX: Final = "apr"
SUPERSEDED_REASON: Final = "superseded"
INTERRUPTED_REASON: Final = "interrupted: the process that ran it ended; it is not retried"


class ApprovalStatus(StrEnum):
    REQUESTED = "requested"
    APPROVED = "approved"
    RUNNING = "running"
    FINISHED = "finished"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


TRANSITIONS: Final[Mapping[ApprovalStatus, frozenset[ApprovalStatus]]] = {
    ApprovalStatus.REQUESTED: frozenset(
        {
            ApprovalStatus.APPROVED,
            ApprovalStatus.DENIED,
            ApprovalStatus.EXPIRED,
            ApprovalStatus.CANCELLED,
        }
    ),
    ApprovalStatus.APPROVED: frozenset({ApprovalStatus.RUNNING, ApprovalStatus.CANCELLED}),
    ApprovalStatus.RUNNING: frozenset({ApprovalStatus.FINISHED}),
    ApprovalStatus.FINISHED: frozenset(),
    ApprovalStatus.DENIED: frozenset(),
    ApprovalStatus.EXPIRED: frozenset(),
    ApprovalStatus.CANCELLED: frozenset(),
}
_EVENT_BY_STATUS: Final = {
    ApprovalStatus.REQUESTED: APPROVAL_REQUESTED,
    ApprovalStatus.APPROVED: APPROVAL_ANSWERED,
    ApprovalStatus.DENIED: APPROVAL_ANSWERED,
    ApprovalStatus.FINISHED: APPROVAL_FINISHED,
    ApprovalStatus.EXPIRED: APPROVAL_EXPIRED,
    ApprovalStatus.CANCELLED: APPROVAL_FINISHED,
}


class Requester(Struct, frozen=True):
    """The caller. The call runs with the caller's permissions, not the approver's."""

    name: str
    kind: CredentialKind
    permissions: tuple[Permission, ...]
    role: Role | None = None
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    key: str = ""
    key_name: str = ""

    @classmethod
    def from_actor(cls, actor: Actor) -> Requester:
        return cls(
            actor.name,
            actor.kind,
            tuple(sorted(actor.permissions)),
            actor.role,
            actor.person,
            actor.agent,
            actor.workspace,
            actor.key,
            actor.key_name,
        )

    def to_actor(self, tenant: str) -> Actor:
        fields = asdict(self) | {"permissions": frozenset(self.permissions)}
        return Actor(tenant, **fields)


class ToolResult(Struct, frozen=True):
    content: str
    is_error: bool = False
    structured: Any = None


class Approval(Struct, frozen=True, kw_only=True):
    id: str
    tenant: str
    agent: str
    tool: str
    asker: Requester
    redacted_arguments: Mapping[str, Any]
    """Arguments with secrets redacted, for display."""
    sealed: str
    """Original arguments, sealed for the tool.

    Emptied when the call can no longer run.
    """
    digest: str
    """Digest of the tool and its arguments."""
    requested: TimestampMs
    expires: TimestampMs
    mode: Audience
    workspace: str | None = None
    sandbox: str | None = None
    sandbox_config: str = ""
    """Digest of the sandbox's config at the time of the request."""
    expected_version: int | None = None
    """Version of the file at the time of the request; 0: absent, None: replaces none."""
    run: str | None = None
    session: str | None = None
    entry_count: int = 0
    """Number of the session's last entry at the time of the request."""
    call: str | None = None
    """The caller's id of this call."""
    status: ApprovalStatus = ApprovalStatus.REQUESTED
    answer: bool | None = None
    answered_by: str | None = None
    answered: TimestampMs | None = None
    reason: str = ""
    """Reason of a denial or cancellation, or comment of an approval."""
    started: TimestampMs | None = None
    ended: TimestampMs | None = None
    result: ToolResult | None = None

    @property
    def is_final(self) -> bool:
        """Whether no further transition is possible."""
        return not TRANSITIONS[self.status]

    def is_visible_to(self, audience: Audience) -> bool:
        """Whether a session of this audience may see the call and its result."""
        return audience is Audience.MAIN or self.mode is audience

    @property
    def model_result(self) -> ToolResult | None:
        """Result shown to the model; None while the approval is open."""
        match self.status:
            case ApprovalStatus.FINISHED:
                return self.result
            case ApprovalStatus.DENIED:
                suffix = f": {self.reason}" if self.reason else ""
                return ToolResult(f"Error: denied by a person{suffix}", True)
            case ApprovalStatus.EXPIRED:
                return ToolResult("not run: the approval expired", True)
            case ApprovalStatus.CANCELLED:
                return ToolResult(f"not run: {self.reason}", True)
            case _:
                return None


def call_fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Digest of a tool and its arguments, independent of key order."""
    canonical = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def format_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments for a reader who decides about the call: complete, nothing hidden.

    Further lines of a value are indented, so that no value looks like another argument.
    """
    return "\n".join(_format_argument(name, value) for name, value in arguments.items())


def _format_argument(name: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    separator = "\n" if "\n" in text else " "
    return show_hidden_characters(f"{name}:{separator}{text}").replace("\n", "\n    ")


def answer_approval(
    approval: Approval, approved: bool, author: str, at: TimestampMs, reason: str = ""
) -> Approval:
    """Record an answer; repeating the same answer changes nothing.

    Raises Conflict if it was answered differently or cancelled, Expired if it is too late.
    """
    if approval.answer is not None:
        if approval.answer is approved:
            return approval
        previous = "approved" if approval.answer else "denied"
        raise Conflict(f"already {previous}", status=approval.status)
    if approval.status is ApprovalStatus.EXPIRED or is_past_deadline(approval, at):
        raise Expired("the approval expired; the call is not run", status=ApprovalStatus.EXPIRED)
    if approval.status is ApprovalStatus.CANCELLED:
        raise Conflict(f"the call is not run: {approval.reason}", status=approval.status)
    status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
    answered_approval = replace(
        approval, answer=approved, answered_by=author, answered=at, reason=reason
    )
    return _transition(answered_approval, status, at)


def is_past_deadline(approval: Approval, at: TimestampMs) -> bool:
    return approval.status is ApprovalStatus.REQUESTED and at >= approval.expires


def expire_approval(approval: Approval, at: TimestampMs) -> Approval:
    return _transition(approval, ApprovalStatus.EXPIRED, at)


def cancel_approval(approval: Approval, reason: str, at: TimestampMs) -> Approval:
    """Cancel a call that has not started. Raises Conflict otherwise."""
    return _transition(replace(approval, reason=reason), ApprovalStatus.CANCELLED, at)


def start_approval(approval: Approval, at: TimestampMs) -> Approval:
    """Mark an approved call as running.

    Raises Conflict if it may not run or was started before.
    """
    return _transition(approval, ApprovalStatus.RUNNING, at)


def finish_approval(approval: Approval, result: ToolResult, at: TimestampMs) -> Approval:
    return _transition(replace(approval, result=result), ApprovalStatus.FINISHED, at)


def _transition(approval: Approval, to: ApprovalStatus, at: TimestampMs) -> Approval:
    if to not in TRANSITIONS[approval.status]:
        raise Conflict(f"the approval is {approval.status}", status=approval.status)
    if to is ApprovalStatus.RUNNING:
        return replace(approval, status=to, started=at)
    if TRANSITIONS[to]:
        return replace(approval, status=to)
    return replace(approval, status=to, ended=at, sealed="")


def approval_change(approval: Approval, expected: int) -> RecordChange:
    """Record change that stores the approval if its revision is still `expected`."""
    body = msgspec.to_builtins(approval)
    del body["id"], body["tenant"]
    return RecordChange(
        approval.tenant,
        RecordType.APPROVAL,
        approval.id,
        body,
        expected,
        unique_keys=_unique_keys(approval),
        index_keys=_index_keys(approval),
    )


def _unique_keys(approval: Approval) -> tuple[str, ...]:
    if approval.call is None:
        return () if approval.is_final else (waiting_unique_key(approval),)
    name = scoped_call_name(
        approval.agent, approval.session, approval.run, approval.call, approval.mode
    )
    return (call_unique_key(approval.tenant, name),)


def _index_keys(approval: Approval) -> tuple[str, ...]:
    index_keys = [
        approval_index_key(status=approval.status),
        approval_index_key(agent=approval.agent),
    ]
    index_keys.append(approval_index_key(agent=approval.agent, status=approval.status))
    if approval.status is ApprovalStatus.REQUESTED and approval.session is not None:
        index_keys.append(session_index_key(approval.agent, approval.session))
    if not approval.is_final and approval.run is not None:
        index_keys.append(open_run_index_key(approval.run))
    return tuple(index_keys)


def approval_index_key(*, agent: str | None = None, status: ApprovalStatus | None = None) -> str:
    """Index key that lists approvals by agent, by status or by both; empty lists all."""
    parts = [f"agent:{agent}"] if agent else []
    return "/".join([*parts, f"status:{status}"] if status else parts)


def session_index_key(agent: str, session: str) -> str:
    """Index key of open approvals that a new message in the session supersedes."""
    return f"session:{agent}:{session}"


def open_run_index_key(run: str) -> str:
    """Index key of a run's approvals that are not closed: while there is one, the run waits."""
    return f"open-run:{run}"


def scoped_call_name(
    agent: str, session: str | None, run: str | None, call: str, audience: Audience
) -> str:
    """Name of a call: the caller's call id is unique only within its session and run.

    The audience is part of it, so that a shared call never gets the result of a private one.
    """
    conversation = "\0".join((session or "", run or "", call, audience))
    return f"{agent}/{hashlib.sha256(conversation.encode()).hexdigest()}"


def call_unique_key(tenant: str, name: str) -> str:
    """Unique key that finds the approval of a call."""
    return unique_key(tenant, RecordType.APPROVAL, "call", name)


def waiting_unique_key(approval: Approval) -> str:
    """Unique key of an open call without a call id: a repeated call joins it."""
    asker = approval.asker
    parts = (
        *(asker.name, asker.key, approval.session, approval.run, approval.mode),
        *(approval.workspace, approval.sandbox, approval.sandbox_config),
        *(approval.expected_version, approval.digest),
    )
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return unique_key(approval.tenant, RecordType.APPROVAL, "waiting", f"{approval.agent}/{name}")


def approval_from_record(record: Record) -> Approval:
    fields = {**record.body, "id": record.id, "tenant": record.tenant}
    return msgspec.convert(fields, Approval)


def approval_events(approval: Approval) -> tuple[EventDraft, ...]:
    """Event of the current status: names the approval and tool, never the arguments."""
    type = _EVENT_BY_STATUS.get(approval.status)
    if type is None:
        return ()
    payload = {
        "approvalId": approval.id,
        "agentId": approval.agent,
        "tool": approval.tool,
        "status": str(approval.status),
    }
    return (EventDraft(approval.tenant, type, payload),)
