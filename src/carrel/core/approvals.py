"""Approvals: a call that waits for somebody's yes, what may become of it, and what is told of it.

It is requested, then approved, denied, expired or cancelled; what was approved runs once, and is
finished then, or is cancelled before it has begun, where what it rests on is no more what it was.
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
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.store.event import (
    APPROVAL_ANSWERED,
    APPROVAL_FINISHED,
    APPROVAL_REQUESTED,
    EventDraft,
)
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

PREFIX: Final = "apr"
SUPERSEDED: Final = "superseded"
INTERRUPTED: Final = "interrupted: the process that ran it ended, and it is not run again"


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
    ApprovalStatus.EXPIRED: APPROVAL_FINISHED,
    ApprovalStatus.CANCELLED: APPROVAL_FINISHED,
}


class Requester(Struct, frozen=True):
    """Whoever called: the call runs by their rights, never by those of whoever says yes."""

    name: str
    kind: CredentialKind
    permissions: tuple[Permission, ...]
    role: Role | None = None
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    key: str = ""

    @classmethod
    def of(cls, actor: Actor) -> Requester:
        return cls(
            actor.name,
            actor.kind,
            tuple(sorted(actor.permissions)),
            actor.role,
            actor.person,
            actor.agent,
            actor.workspace,
            actor.key,
        )

    def actor(self, tenant: str) -> Actor:
        held = asdict(self) | {"permissions": frozenset(self.permissions)}
        return Actor(tenant, **held)


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
    shown: Mapping[str, Any]
    """The arguments without secrets: what people are shown."""
    sealed: str
    """The arguments as they were given, for nobody but the tool; empty once nothing can run."""
    digest: str
    """Of the tool and its arguments."""
    requested: TimestampMs
    expires: TimestampMs
    mode: Audience
    workspace: str | None = None
    sandbox: str | None = None
    sandbox_revision: int = 0
    """Of the sandbox's record, as it was when this was asked."""
    run: str | None = None
    session: str | None = None
    said: int = 0
    """How much had been said in the session."""
    call: str | None = None
    """What the caller calls this call."""
    status: ApprovalStatus = ApprovalStatus.REQUESTED
    answer: bool | None = None
    answered_by: str | None = None
    answered: TimestampMs | None = None
    reason: str = ""
    """Why it was denied or cancelled, or what was said with the yes."""
    started: TimestampMs | None = None
    ended: TimestampMs | None = None
    result: ToolResult | None = None

    @property
    def lasts(self) -> bool:
        """Whether nothing more becomes of it."""
        return not TRANSITIONS[self.status]

    @property
    def told(self) -> ToolResult | None:
        """What the model is told of it, None while that is open."""
        match self.status:
            case ApprovalStatus.FINISHED:
                return self.result
            case ApprovalStatus.DENIED:
                because = f": {self.reason}" if self.reason else ""
                return ToolResult(f"Error: denied by a person{because}", True)
            case ApprovalStatus.EXPIRED:
                return ToolResult("not run: nobody answered in time", True)
            case ApprovalStatus.CANCELLED:
                return ToolResult(f"not run: {self.reason}", True)
            case _:
                return None


def fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """What tells one call from another: the tool and what it is given, however that is ordered."""
    said = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def answered(
    approval: Approval, approved: bool, author: str, at: TimestampMs, reason: str = ""
) -> Approval:
    """With somebody's answer; the very same where that was the answer before.

    Raises Taken where the answer was another or none is wanted any more, Gone where it is too late.
    """
    if approval.answer is not None:
        if approval.answer is approved:
            return approval
        said = "approved" if approval.answer else "denied"
        raise Conflict(f"it was {said} before", status=approval.status)
    if approval.status is ApprovalStatus.EXPIRED or is_late(approval, at):
        raise Expired("nobody answered in time, and it is not run", status=ApprovalStatus.EXPIRED)
    if approval.status is ApprovalStatus.CANCELLED:
        raise Conflict(f"it is not run: {approval.reason}", status=approval.status)
    status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
    given = replace(approval, answer=approved, answered_by=author, answered=at, reason=reason)
    return _transition(given, status, at)


def is_late(approval: Approval, at: TimestampMs) -> bool:
    return approval.status is ApprovalStatus.REQUESTED and at >= approval.expires


def expired(approval: Approval, at: TimestampMs) -> Approval:
    return _transition(approval, ApprovalStatus.EXPIRED, at)


def cancelled(approval: Approval, reason: str, at: TimestampMs) -> Approval:
    """Not run, though nobody denied it. Raises Taken for what has begun or is over."""
    return _transition(replace(approval, reason=reason), ApprovalStatus.CANCELLED, at)


def start(approval: Approval, at: TimestampMs) -> Approval:
    """Raises Taken for what may not run, or has been begun before."""
    return _transition(approval, ApprovalStatus.RUNNING, at)


def finished(approval: Approval, result: ToolResult, at: TimestampMs) -> Approval:
    return _transition(replace(approval, result=result), ApprovalStatus.FINISHED, at)


def _transition(approval: Approval, to: ApprovalStatus, at: TimestampMs) -> Approval:
    if to not in TRANSITIONS[approval.status]:
        raise Conflict(f"the approval is {approval.status}", status=approval.status)
    if to is ApprovalStatus.RUNNING:
        return replace(approval, status=to, started=at)
    if TRANSITIONS[to]:
        return replace(approval, status=to)
    return replace(approval, status=to, ended=at, sealed="")


def change_of(approval: Approval, expected: int) -> RecordChange:
    """The record as it should become, if it still is as it was seen."""
    body = msgspec.to_builtins(approval)
    del body["id"], body["tenant"]
    return RecordChange(
        approval.tenant,
        RecordType.APPROVAL,
        approval.id,
        body,
        expected,
        unique_keys=_handles(approval),
        index_keys=_links(approval),
    )


def _handles(approval: Approval) -> tuple[str, ...]:
    if approval.call is None:
        return ()
    name = call_name(approval.agent, approval.session, approval.run, approval.call)
    return (call_handle(approval.tenant, name),)


def _links(approval: Approval) -> tuple[str, ...]:
    index_keys = [link_of(status=approval.status), link_of(agent=approval.agent)]
    index_keys.append(link_of(agent=approval.agent, status=approval.status))
    if approval.status is ApprovalStatus.REQUESTED and approval.session is not None:
        index_keys.append(session_link(approval.session))
    return tuple(index_keys)


def link_of(*, agent: str | None = None, status: ApprovalStatus | None = None) -> str:
    """What lists those of an agent, in a status, or both; empty for all."""
    parts = [f"agent:{agent}"] if agent else []
    return "/".join([*parts, f"status:{status}"] if status else parts)


def session_link(session: str) -> str:
    """What lists those that a new message in a session makes void."""
    return f"session:{session}"


def call_name(agent: str, session: str | None, run: str | None, call: str) -> str:
    """What a call is known by here: its caller names it within its conversation alone."""
    said = "\0".join((session or "", run or "", call))
    return f"{agent}/{hashlib.sha256(said.encode()).hexdigest()}"


def call_handle(tenant: str, name: str) -> str:
    """What finds the approval of a call."""
    return unique_key(tenant, RecordType.APPROVAL, "call", name)


def approval_of(record: Record) -> Approval:
    known = {**record.body, "id": record.id, "tenant": record.tenant}
    return msgspec.convert(known, Approval)


def approval_event(approval: Approval) -> tuple[EventDraft, ...]:
    """What is told when it has come into this status: whose it is, never what it does."""
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
