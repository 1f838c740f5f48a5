"""Approvals: asking before a call runs, answering, and noting what became of it.

Every step is a commit that expects the record as it was seen, with its event and its line in the
audit. Hence of many who answer, one is heard, and of many who would run it, one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from carrel.actions.approvals.transitions import cancel, commit, context, expire
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import Page, find, iter_records, page, retry_while_busy
from carrel.core import approvals
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.agents.agent import agent_fields
from carrel.core.approvals import (
    PREFIX,
    SUPERSEDED,
    Approval,
    ApprovalStatus,
    Requester,
    approval_of,
    call_handle,
    call_name,
    fingerprint,
    is_late,
    link_of,
    session_link,
)
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.runs import Audience
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

LONGEST_REASON: Final = 2000
_LOOK: Final = 1.0
_BREATH: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A call that somebody has to say yes to."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    mode: Audience
    workspace: str | None = None
    sandbox: str | None = None
    sandbox_revision: int = 0
    run: str | None = None
    session: str | None = None
    call: str | None = None


async def request_approval(ports: Ports, actor: Actor, question: ApprovalRequest) -> Approval:
    """Keep a call until it is answered; one that was asked about before is found again.

    Its arguments are kept sealed, and shown without secrets. Raises Taken where a call of that id
    was another.
    """
    if known := await find_for_call(ports, actor.tenant, question):
        return known
    id, at = ports.clock.new_id(PREFIX), ports.clock.now()
    rules = await load_rules(ports, actor.tenant)
    sealed = ports.vault.seal(msgspec.json.encode(question.arguments), context(actor.tenant, id))
    new = Approval(
        id=id,
        tenant=actor.tenant,
        agent=question.agent,
        tool=question.tool,
        asker=Requester.of(actor),
        shown=_without_secrets(rules.redact_text, dict(question.arguments)),
        sealed=sealed,
        digest=fingerprint(question.tool, question.arguments),
        requested=at,
        expires=at + ports.approvals.span,
        mode=question.mode,
        workspace=question.workspace,
        sandbox=question.sandbox,
        sandbox_revision=question.sandbox_revision,
        run=question.run,
        session=question.session,
        said=await _said(ports, actor.tenant, question.session),
        call=question.call,
    )
    try:
        await commit(ports, actor.name, f"ask to run {new.tool}", new, 0)
    except Busy:
        if known := await find_for_call(ports, actor.tenant, question):
            return known
        raise
    return new


async def find_for_call(ports: Ports, tenant: str, question: ApprovalRequest) -> Approval | None:
    """What was asked about a call of this id. Raises Taken where that was another call."""
    if question.call is None:
        return None
    name = call_name(question.agent, question.session, question.run, question.call)
    [record] = await ports.records.get_by_unique_key([call_handle(tenant, name)])
    if record is None:
        return None
    found = approval_of(record)
    if found.digest != fingerprint(question.tool, question.arguments):
        raise Conflict("a call of that id was another one", callId=question.call)
    return found


async def get(ports: Ports, actor: Actor, id: str) -> Approval:
    """Raises Missing, also for one that this caller may not know of."""
    return approval_of(await _find(ports, actor, id))


async def listing(
    ports: Ports,
    actor: Actor,
    *,
    agent: str | None = None,
    status: ApprovalStatus | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Approval]:
    """Approvals of the tenant, of an agent, or in a status: the oldest first."""
    if actor.is_confined and actor.agent is None:
        raise Forbidden("this credential is confined to one workspace")
    named = agent or actor.agent
    owner = (await stacks.agent_stack(ports, actor, named))[0].name if named else None
    link = link_of(agent=owner, status=status)
    found = await page(
        ports, actor.tenant, RecordType.APPROVAL, link=link, cursor=cursor, limit=limit
    )
    return Page(tuple(map(approval_of, found.items)), found.next)


async def wait_until_closed(ports: Ports, actor: Actor, id: str, seconds: float) -> Approval:
    """The same as `get`, but not before nothing more becomes of it, or the time is over."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while not (found := await get(ports, actor, id)).lasts and (left := ends - loop.time()) > 0:
        await ports.events.wait_for_new(min(left, _LOOK))
        await asyncio.sleep(min(left, _BREATH))  # a busy store wakes all the time
    return found


async def answer(ports: Ports, actor: Actor, id: str, approved: bool, reason: str = "") -> Approval:
    """Say yes or no; the same answer again changes nothing.

    What is approved is run by whoever finds it, this process first. Raises Missing, Forbidden,
    Taken where it was answered otherwise or is cancelled, and Gone where it is too late.
    """
    if len(reason) > LONGEST_REASON:
        raise ValidationError(f"a reason has at most {LONGEST_REASON} characters")

    async def attempt() -> Approval:
        record = await _find(ports, actor, id)
        was, at = approval_of(record), ports.clock.now()
        await _may_answer(ports, actor, was)
        if is_late(was, at):
            await expire(ports, record)
        said = (await load_rules(ports, actor.tenant)).redact_text(reason)
        now = approvals.answered(was, approved, actor.name, at, said)
        if now is not was:
            verb = "approve" if approved else "deny"
            await commit(ports, actor.name, f"{verb} a call of {was.tool}", now, record.revision)
        return now

    found = await retry_while_busy(attempt)
    if found.status is ApprovalStatus.APPROVED:
        ports.approvals.approved.set()
    return found


async def supersede(ports: Ports, tenant: str, session: str) -> None:
    """Cancel what waits in a session in which somebody has said something else."""
    async for record in iter_records(ports, tenant, RecordType.APPROVAL, session_link(session)):
        with suppress(
            Busy, Conflict
        ):  # it was answered meanwhile: whoever would run it looks again
            await cancel(ports, record, SUPERSEDED)


async def _find(ports: Ports, actor: Actor, id: str) -> Record:
    record = await find(ports, actor.tenant, RecordType.APPROVAL, id)
    if actor.is_confined and actor.agent != record.body["agent"]:
        raise NotFound(f"there is no approval {id}")
    return record


async def _may_answer(ports: Ports, actor: Actor, approval: Approval) -> None:
    """Owners and admins may, and the person whom the agent works for or belongs to."""
    actor.require(Permission.WORKSPACE_WRITE)
    if actor.kind is CredentialKind.PERSON:
        if actor.role in {Role.OWNER, Role.ADMIN}:
            return
        [agent] = await ports.records.get(actor.tenant, RecordType.AGENT, [approval.agent])
        known = agent_fields(agent) if agent else {}
        if actor.person and actor.person in {known.get("humanPairId"), known.get("ownerId")}:
            return
    raise Forbidden("only an owner, an admin or the agent's own person may answer")


async def may_answer(ports: Ports, actor: Actor, approval: Approval) -> bool:
    """Whether somebody's answer would count."""
    try:
        await _may_answer(ports, actor, approval)
    except Forbidden:
        return False
    return True


async def _said(ports: Ports, tenant: str, session: str | None) -> int:
    if session is None:
        return 0
    [found] = await ports.sessions.get(tenant, [session])
    return found.entries if found else 0


def _without_secrets(redacted: Any, value: Any) -> Any:
    """The same with every text redacted, names included."""
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return {redacted(k): _without_secrets(redacted, v) for k, v in value.items()}
        case list() | tuple():
            return [_without_secrets(redacted, one) for one in value]
        case _:
            return value
