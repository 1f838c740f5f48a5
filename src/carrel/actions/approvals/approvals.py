"""Approvals: request one for a tool call, answer it, and wait for the result.

Every transition is a commit that expects the record unchanged, with its event and audit entry.
So one of several concurrent answers wins, and one of several workers runs the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from carrel.actions.agent_access import find_open_agents, list_open
from carrel.actions.approvals.transitions import cancel, commit, expire, seal_context
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import Page, get_record, iter_records, list_page
from carrel.actions.retry import retry_on_conflict
from carrel.core import approvals
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.agents.agent import agent_from_record
from carrel.core.approvals import (
    ID_PREFIX,
    SUPERSEDED_REASON,
    Approval,
    ApprovalStatus,
    Requester,
    approval_from_record,
    approval_index_key,
    call_fingerprint,
    call_unique_key,
    is_past_deadline,
    scoped_call_name,
    session_index_key,
    waiting_unique_key,
)
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.runs import Audience
from carrel.core.sandbox.command_arguments import hide_environment
from carrel.core.store.record import EVERY_RECORD, Record, RecordFilter, RecordType
from carrel.ports import Ports

MAX_REASON_LENGTH: Final = 2000
_POLL_SECONDS: Final = 1.0
_WAKE_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """Tool call that needs a person's approval."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    mode: Audience
    workspace: str | None = None
    sandbox: str | None = None
    sandbox_config: str = ""
    expected_version: int | None = None
    run: str | None = None
    session: str | None = None
    call: str | None = None


async def request_approval(ports: Ports, actor: Actor, request: ApprovalRequest) -> Approval:
    """Store a call until it is answered; a repeated call returns the same approval.

    A call without an id repeats an open one with the same arguments. The arguments are stored
    sealed, and redacted for display. Raises Conflict if the call id was used for a different call.
    """
    new = await _draft_approval(ports, actor, request)
    if existing := await _find_repeated(ports, new, request):
        return existing
    try:
        await commit(ports, actor, f"request approval to run {new.tool}", new, 0)
    except Busy:
        if existing := await _find_repeated(ports, new, request):
            return existing
        raise
    return new


async def _draft_approval(ports: Ports, actor: Actor, request: ApprovalRequest) -> Approval:
    id, requested_at = ports.clock.new_id(ID_PREFIX), ports.clock.now()
    rules = await load_rules(ports, actor.tenant)
    sealed = ports.vault.seal(
        msgspec.json.encode(request.arguments), seal_context(actor.tenant, id)
    )
    return Approval(
        id=id,
        tenant=actor.tenant,
        agent=request.agent,
        tool=request.tool,
        asker=Requester.from_actor(actor),
        redacted_arguments=rules.redact_fields(dict(hide_environment(request.arguments))),
        sealed=sealed,
        digest=call_fingerprint(request.tool, request.arguments),
        requested=requested_at,
        expires=requested_at + ports.approvals.timeout_ms,
        mode=request.mode,
        workspace=request.workspace,
        sandbox=request.sandbox,
        sandbox_config=request.sandbox_config,
        expected_version=request.expected_version,
        run=request.run,
        session=request.session,
        entry_count=await _last_entry(ports, actor.tenant, request.agent, request.session),
        call=request.call,
    )


async def _find_repeated(ports: Ports, new: Approval, request: ApprovalRequest) -> Approval | None:
    """Find the approval that this call repeats; one that is past its deadline is closed."""
    if request.call is not None:
        return await find_for_call(ports, new.tenant, request)
    [record] = await ports.records.get_by_unique_key([waiting_unique_key(new)])
    if record is None:
        return None
    approval = approval_from_record(record)
    if not is_past_deadline(approval, new.requested):
        return approval
    await expire(ports, record)
    return None


async def find_for_call(ports: Ports, tenant: str, request: ApprovalRequest) -> Approval | None:
    """Find the approval of a call id. Raises Conflict if that was a different call."""
    if request.call is None:
        return None
    name = scoped_call_name(request.agent, request.session, request.run, request.call, request.mode)
    [record] = await ports.records.get_by_unique_key([call_unique_key(tenant, name)])
    if record is None:
        return None
    approval = approval_from_record(record)
    if approval.digest != call_fingerprint(request.tool, request.arguments):
        raise Conflict("this call id was used for a different call", callId=request.call)
    return approval


async def get(ports: Ports, actor: Actor, id: str) -> Approval:
    """Get an approval. Raises NotFound, also if the caller may not see it."""
    _, approval = await _get_with_record(ports, actor, id)
    return approval


async def list_approvals(
    ports: Ports,
    actor: Actor,
    *,
    agent: str | None = None,
    status: ApprovalStatus | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Approval]:
    """List approvals of the tenant, an agent or a status, oldest first.

    Omits those of agents that the caller may not open.
    """
    if actor.is_confined and actor.agent is None:
        raise Forbidden("this credential is confined to one workspace")
    agent_name = agent or actor.agent
    agent_id = (await stacks.agent_stack(ports, actor, agent_name))[0].name if agent_name else None
    index_key = approval_index_key(agent=agent_id, status=status)

    async def load_page(cursor: str, limit: int) -> Page[Approval]:
        records = await list_page(
            ports,
            actor.tenant,
            RecordType.APPROVAL,
            matching=RecordFilter((index_key,)) if index_key else EVERY_RECORD,
            cursor=cursor,
            limit=limit,
        )
        approvals = tuple(map(approval_from_record, records.items))
        return Page(approvals, records.next, records.total)

    if agent_id is not None:
        return await load_page(cursor, limit)
    return await list_open(
        ports, actor, load_page, lambda item: item.agent, cursor=cursor, limit=limit
    )


async def wait_until_closed(ports: Ports, actor: Actor, id: str, seconds: float) -> Approval:
    """Get an approval once it is closed, or when `seconds` have passed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (
        not (approval := await get(ports, actor, id)).is_final
        and (remaining := deadline - loop.time()) > 0
    ):
        await ports.events.wait_for_new(min(remaining, _POLL_SECONDS))
        await asyncio.sleep(
            min(remaining, _WAKE_PAUSE_SECONDS)
        )  # a busy store wakes the waiter constantly
    return approval


async def answer(ports: Ports, actor: Actor, id: str, approved: bool, reason: str = "") -> Approval:
    """Approve or deny a call; repeating the same answer changes nothing.

    An approved call is run by the first worker that claims it. Raises NotFound, Forbidden, Conflict
    if it was answered differently or cancelled, and Expired if it is too late.
    """
    if len(reason) > MAX_REASON_LENGTH:
        raise ValidationError(f"reason must have at most {MAX_REASON_LENGTH} characters")
    approval = await _commit_answer(ports, actor, id, approved, reason)
    if approval.status is ApprovalStatus.APPROVED:
        ports.approvals.approved_event.set()
    return approval


@retry_on_conflict()
async def _commit_answer(
    ports: Ports, actor: Actor, id: str, approved: bool, reason: str
) -> Approval:
    record, current = await _get_with_record(ports, actor, id)
    answered_at = ports.clock.now()
    await _require_approver(ports, actor, current)
    if is_past_deadline(current, answered_at):
        await expire(ports, record)
    redacted_reason = (await load_rules(ports, actor.tenant)).redact_text(reason)
    updated = approvals.answer_approval(current, approved, actor.name, answered_at, redacted_reason)
    if updated is not current:
        verb = "approve" if approved else "deny"
        await commit(ports, actor, f"{verb} a call of {current.tool}", updated, record.revision)
    return updated


async def supersede(ports: Ports, tenant: str, agent: str, session: str) -> None:
    """Cancel pending approvals of a session after a new user message."""
    async for record in iter_records(
        ports, tenant, RecordType.APPROVAL, session_index_key(agent, session)
    ):
        with suppress(
            Busy, Conflict
        ):  # answered meanwhile: the worker checks again before it runs the call
            await cancel(ports, record, SUPERSEDED_REASON)


async def _get_with_record(ports: Ports, actor: Actor, id: str) -> tuple[Record, Approval]:
    record = await get_record(ports, actor.tenant, RecordType.APPROVAL, id)
    approval = approval_from_record(record)
    if approval.agent not in await find_open_agents(ports, actor, [approval.agent]):
        raise NotFound(f"no such approval: {id}")
    return record, approval


async def _require_approver(ports: Ports, actor: Actor, approval: Approval) -> None:
    """Raise Forbidden unless the caller is an owner, an admin or the agent's person."""
    actor.require(Permission.WORKSPACE_WRITE)
    if actor.kind is CredentialKind.PERSON:
        if actor.role in {Role.OWNER, Role.ADMIN}:
            return
        [agent] = await ports.records.get(actor.tenant, RecordType.AGENT, [approval.agent])
        if agent and agent_from_record(agent).is_of_person(actor.person):
            return
    raise Forbidden("only an owner, an admin or the agent's person may answer")


async def can_answer(ports: Ports, actor: Actor, approval: Approval) -> bool:
    """Return whether the caller may answer the approval."""
    try:
        await _require_approver(ports, actor, approval)
    except Forbidden:
        return False
    return True


async def _last_entry(ports: Ports, tenant: str, agent: str, session: str | None) -> int:
    if session is None:
        return 0
    [record] = await ports.sessions.get(tenant, agent, [session])
    return record.last_sequence if record else 0
