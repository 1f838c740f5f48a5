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

from carrel.core.access import Actor, KeyKind, Permission, Role
from carrel.core.errors import Gone, Taken
from carrel.core.identifiers import Moment
from carrel.core.runs import Mode
from carrel.core.store.event import (
    APPROVAL_ANSWERED,
    APPROVAL_FINISHED,
    APPROVAL_REQUESTED,
    Telling,
)
from carrel.core.store.record import Change, Noun, Record, handle

PREFIX: Final = "apr"
SUPERSEDED: Final = "superseded"
INTERRUPTED: Final = "interrupted: the process that ran it ended, and it is not run again"


class Status(StrEnum):
    REQUESTED = "requested"
    APPROVED = "approved"
    RUNNING = "running"
    FINISHED = "finished"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


BECOMES: Final[Mapping[Status, frozenset[Status]]] = {
    Status.REQUESTED: frozenset({Status.APPROVED, Status.DENIED, Status.EXPIRED, Status.CANCELLED}),
    Status.APPROVED: frozenset({Status.RUNNING, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.FINISHED}),
    Status.FINISHED: frozenset(),
    Status.DENIED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.CANCELLED: frozenset(),
}
_TOLD: Final = {
    Status.REQUESTED: APPROVAL_REQUESTED,
    Status.APPROVED: APPROVAL_ANSWERED,
    Status.DENIED: APPROVAL_ANSWERED,
    Status.FINISHED: APPROVAL_FINISHED,
    Status.EXPIRED: APPROVAL_FINISHED,
    Status.CANCELLED: APPROVAL_FINISHED,
}


class Asker(Struct, frozen=True):
    """Whoever called: the call runs by their rights, never by those of whoever says yes."""

    name: str
    kind: KeyKind
    permissions: tuple[Permission, ...]
    role: Role | None = None
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    key: str = ""

    @classmethod
    def of(cls, actor: Actor) -> Asker:
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


class Result(Struct, frozen=True):
    content: str
    is_error: bool = False
    structured: Any = None


class Approval(Struct, frozen=True, kw_only=True):
    id: str
    tenant: str
    agent: str
    tool: str
    asker: Asker
    shown: Mapping[str, Any]
    """The arguments without secrets: what people are shown."""
    sealed: str
    """The arguments as they were given, for nobody but the tool; empty once nothing can run."""
    digest: str
    """Of the tool and its arguments."""
    requested: Moment
    expires: Moment
    mode: Mode
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
    status: Status = Status.REQUESTED
    answer: bool | None = None
    answered_by: str | None = None
    answered: Moment | None = None
    reason: str = ""
    """Why it was denied or cancelled, or what was said with the yes."""
    started: Moment | None = None
    ended: Moment | None = None
    result: Result | None = None

    @property
    def lasts(self) -> bool:
        """Whether nothing more becomes of it."""
        return not BECOMES[self.status]

    @property
    def told(self) -> Result | None:
        """What the model is told of it, None while that is open."""
        match self.status:
            case Status.FINISHED:
                return self.result
            case Status.DENIED:
                because = f": {self.reason}" if self.reason else ""
                return Result(f"Error: denied by a person{because}", True)
            case Status.EXPIRED:
                return Result("not run: nobody answered in time", True)
            case Status.CANCELLED:
                return Result(f"not run: {self.reason}", True)
            case _:
                return None


def fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """What tells one call from another: the tool and what it is given, however that is ordered."""
    said = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def answered(approval: Approval, approved: bool, by: str, at: Moment, reason: str = "") -> Approval:
    """With somebody's answer; the very same where that was the answer before.

    Raises Taken where the answer was another or none is wanted any more, Gone where it is too late.
    """
    if approval.answer is not None:
        if approval.answer is approved:
            return approval
        said = "approved" if approval.answer else "denied"
        raise Taken(f"it was {said} before", status=approval.status)
    if approval.status is Status.EXPIRED or is_late(approval, at):
        raise Gone("nobody answered in time, and it is not run", status=Status.EXPIRED)
    if approval.status is Status.CANCELLED:
        raise Taken(f"it is not run: {approval.reason}", status=approval.status)
    status = Status.APPROVED if approved else Status.DENIED
    given = replace(approval, answer=approved, answered_by=by, answered=at, reason=reason)
    return _moved(given, status, at)


def is_late(approval: Approval, at: Moment) -> bool:
    return approval.status is Status.REQUESTED and at >= approval.expires


def expired(approval: Approval, at: Moment) -> Approval:
    return _moved(approval, Status.EXPIRED, at)


def cancelled(approval: Approval, why: str, at: Moment) -> Approval:
    """Not run, though nobody denied it. Raises Taken for what has begun or is over."""
    return _moved(replace(approval, reason=why), Status.CANCELLED, at)


def begun(approval: Approval, at: Moment) -> Approval:
    """Raises Taken for what may not run, or has been begun before."""
    return _moved(approval, Status.RUNNING, at)


def finished(approval: Approval, result: Result, at: Moment) -> Approval:
    return _moved(replace(approval, result=result), Status.FINISHED, at)


def _moved(approval: Approval, to: Status, at: Moment) -> Approval:
    if to not in BECOMES[approval.status]:
        raise Taken(f"the approval is {approval.status}", status=approval.status)
    if to is Status.RUNNING:
        return replace(approval, status=to, started=at)
    if BECOMES[to]:
        return replace(approval, status=to)
    return replace(approval, status=to, ended=at, sealed="")


def change_of(approval: Approval, expected: int) -> Change:
    """The record as it should become, if it still is as it was seen."""
    body = msgspec.to_builtins(approval)
    del body["id"], body["tenant"]
    return Change(
        approval.tenant,
        Noun.APPROVAL,
        approval.id,
        body,
        expected,
        handles=_handles(approval),
        links=_links(approval),
    )


def _handles(approval: Approval) -> tuple[str, ...]:
    if approval.call is None:
        return ()
    name = call_name(approval.agent, approval.session, approval.run, approval.call)
    return (call_handle(approval.tenant, name),)


def _links(approval: Approval) -> tuple[str, ...]:
    links = [link_of(status=approval.status), link_of(agent=approval.agent)]
    links.append(link_of(agent=approval.agent, status=approval.status))
    if approval.status is Status.REQUESTED and approval.session is not None:
        links.append(session_link(approval.session))
    return tuple(links)


def link_of(*, agent: str | None = None, status: Status | None = None) -> str:
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
    return handle(tenant, Noun.APPROVAL, "call", name)


def approval_of(record: Record) -> Approval:
    known = {**record.body, "id": record.id, "tenant": record.tenant}
    return msgspec.convert(known, Approval)


def telling_of(approval: Approval) -> tuple[Telling, ...]:
    """What is told when it has come into this status: whose it is, never what it does."""
    type = _TOLD.get(approval.status)
    if type is None:
        return ()
    payload = {
        "approvalId": approval.id,
        "agentId": approval.agent,
        "tool": approval.tool,
        "status": str(approval.status),
    }
    return (Telling(approval.tenant, type, payload),)
