"""Runs: freeze a workspace, read the snapshot and update the status."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from carrel.actions.agent_access import find_open_agents, list_open
from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.prompt_inputs import (
    attached_scopes,
    load_prompt_inputs,
    run_prompt_inputs,
)
from carrel.actions.records import Page, validate_cursor
from carrel.actions.retry import retry_on_conflict
from carrel.actions.runs.run_request import RunRequest, validate_request
from carrel.actions.runs.run_updates import RunChange, apply_update
from carrel.actions.runs.snapshots import SNAPSHOT_DELETED, current_stack, require_snapshot
from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import SessionRequest
from carrel.actions.timezones import local_date
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.identifiers import Scope, ScopeKind, Stack, TimestampMs, parse_identifier
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.workspace_notes import WorkspaceNotes
from carrel.core.runs import NOOP_WORKFLOW, Audience, Run, RunFilter, RunStatus, SnapshotLayer
from carrel.core.sessions.session import Session
from carrel.core.sessions.session_ids import parse_session_id
from carrel.core.store.idempotency import IdempotencyKey, id_from_number
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class _RunPlan:
    layers: Sequence[Scope | SnapshotLayer]
    scope: Scope
    workflow: str
    mode: Audience
    variables: Mapping[str, str]
    snapshot_owner: Run | None = None
    """Run whose snapshot is reused; it retains the files until the new run is stored."""
    lineage: AgentLayers | None = None
    """Agent whose current values were used, if any."""
    workspace_notes: WorkspaceNotes = WorkspaceNotes()
    """Workspace notes at that moment."""
    session: Session | None = None


async def start(
    ports: Ports, actor: Actor, request: RunRequest, idempotency_key: IdempotencyKey | None = None
) -> Run:
    """Freeze a workspace and start a run; the cost does not depend on its files.

    Raises ValidationError, NotFound, Busy, or Conflict if a requested snapshot was deleted.
    """
    validate_request(request)
    request = (await load_rules(ports, actor.tenant)).redact_fields(request)
    return await _complete_noop(
        ports, await _start_consistent(ports, actor, request, idempotency_key)
    )


async def get_started(ports: Ports, actor: Actor, number: int) -> Run:
    """Get the run whose start marked an idempotency key. Raises NotFound."""
    return await _complete_noop(ports, await get(ports, actor, id_from_number("run", number)))


async def _complete_noop(ports: Ports, started: Run) -> Run:
    """Complete a run whose workflow does nothing."""
    is_running_noop = started.workflow == NOOP_WORKFLOW and not started.has_ended
    if not is_running_noop:
        return started
    return await apply_update(ports, started, RunChange(RunStatus.COMPLETED))


@retry_on_conflict()
async def _start_consistent(
    ports: Ports, actor: Actor, request: RunRequest, idempotency_key: IdempotencyKey | None
) -> Run:
    plan = await _plan(ports, actor, request)
    if request.session is not None:
        plan = await _join_session(ports, actor, request, plan)
    started = await _record_run(ports, actor, request, plan, idempotency_key)
    if await _is_consistent(ports, plan):
        if plan.session is not None:
            await ports.sessions.set_run([replace(plan.session, run=started.id)])
        return started
    await apply_update(ports, started, RunChange(RunStatus.CANCELLED, keep_snapshot=False))
    if idempotency_key is not None:
        await ports.idempotency.unmark(idempotency_key)
    raise Busy.with_conflicts()


async def _join_session(
    ports: Ports, actor: Actor, request: RunRequest, plan: _RunPlan
) -> _RunPlan:
    """Complete the plan with the session; a run in a shared session is shared.

    Raises ValidationError, NotFound, Forbidden, and Conflict if the session is closed or has
    another scope than the run.
    """
    actor.require(Permission.WORKSPACE_WRITE)
    if plan.scope.kind is not ScopeKind.AGENT:
        raise ValidationError("a run with a sessionId needs an agent")
    wanted_session = SessionRequest(request.session, scope=plan.mode)
    session, _ = await sessions.start_or_get(ports, actor, plan.scope.name, wanted_session)
    if session.ended_at is not None:
        raise Conflict("the session is closed")
    if session.mode is plan.mode:
        return dataclasses.replace(plan, session=session)
    if request.mode is not None or plan.snapshot_owner is not None:
        raise Conflict(f"the session has scope {session.mode}", scope=session.mode)
    return dataclasses.replace(plan, session=session, mode=session.mode)


async def _record_run(
    ports: Ports,
    actor: Actor,
    request: RunRequest,
    plan: _RunPlan,
    idempotency_key: IdempotencyKey | None,
) -> Run:
    now = ports.clock.now()
    run = Run(
        id=ports.clock.new_id("run"),
        tenant=actor.tenant,
        scope=plan.scope,
        workflow=plan.workflow,
        mode=plan.mode,
        status=RunStatus.RUNNING,
        author=actor.name,
        started_at=now,
        reported_at=now,
        parent=request.parent,
        replay_of=request.replay_of,
        session=None if plan.session is None else plan.session.id,
        variables=plan.variables,
    )
    [started] = await ports.runs.start([(run, plan.layers)], idempotency_key)
    if plan.snapshot_owner is not None:
        await _verify_takeover(ports, plan.snapshot_owner, started)
    return started


async def _is_consistent(ports: Ports, plan: _RunPlan) -> bool:
    """Return whether names and rules are still those that were frozen with the files."""
    if plan.lineage is None:
        return True
    agent = plan.lineage.agent
    try:
        current = await load_agent_layers(ports, agent.tenant, agent.id)
    except NotFound:
        return True
    if (current.key, current.agent.revision) != (plan.lineage.key, agent.revision):
        return False
    try:
        return (
            await load_prompt_inputs(ports, current, plan.mode)
        ).workspace_notes == plan.workspace_notes
    except NotFound:  # An attached workspace was deleted: the next attempt reports which.
        return False


async def _plan(ports: Ports, actor: Actor, request: RunRequest) -> _RunPlan:
    parent = await get(ports, actor, request.parent) if request.parent is not None else None
    if request.replay_of is not None:
        plan = _plan_replay(await get(ports, actor, request.replay_of), request)
    elif parent is not None:
        plan = await _plan_child(ports, parent, request)
    else:
        plan = await _plan_new(ports, actor, request)
    if parent is not None and parent.scope != plan.scope:
        raise ValidationError("a child run must use its parent's workspace")
    if parent is not None and parent.mode is Audience.SHARED and plan.mode is Audience.MAIN:
        raise ValidationError("a child of a shared run must be shared, and the replayed run is not")
    is_named = request.agent is not None or request.workspace is not None
    if is_named and (await _load_stack(ports, actor, request))[0] != plan.scope:
        field = "agentId" if request.agent is not None else "workspaceId"
        raise ValidationError(f"{field} does not match the workspace of the parent or replayed run")
    return plan


async def _load_stack(ports: Ports, actor: Actor, request: RunRequest) -> Stack:
    if request.agent is not None:
        return await stacks.agent_stack(ports, actor, request.agent)
    if request.workspace is not None:
        return await stacks.workspace_stack(ports, actor, request.workspace)
    return await stacks.default_stack(ports, actor)


async def _plan_new(ports: Ports, actor: Actor, request: RunRequest) -> _RunPlan:
    stack = await _load_stack(ports, actor, request)
    mode = request.mode or Audience.MAIN
    return await _with_current_variables(
        ports, _RunPlan(stack, stack[0], request.workflow, mode, {}), stack, request
    )


async def _with_current_variables(
    ports: Ports, plan: _RunPlan, stack: Stack, request: RunRequest
) -> _RunPlan:
    """Complete the plan with the current placeholder values and prompt inputs."""
    scope = stack[0]
    if scope.kind is not ScopeKind.AGENT:
        inputs = PromptInputs(Audience.MAIN, local_date(ports.clock.now(), None))
        return dataclasses.replace(plan, variables=_build_variables(None, request, inputs))
    agent_layers = await load_agent_layers(ports, scope.tenant, scope.name)
    inputs = await load_prompt_inputs(ports, agent_layers, Audience.MAIN)
    return dataclasses.replace(
        plan,
        layers=(*stack, *attached_scopes(scope.tenant, inputs)),
        variables=_build_variables(agent_layers, request, inputs),
        lineage=agent_layers,
        workspace_notes=inputs.workspace_notes,
    )


def _build_variables(
    agent_layers: AgentLayers | None, request: RunRequest, inputs: PromptInputs
) -> Mapping[str, str]:
    """Merge caller metadata, placeholder values and prompt inputs to freeze them."""
    is_agent = agent_layers is not None
    reserved = (
        name
        for name in request.variables
        if PromptInputs.is_reserved(name) or is_agent * AgentFileResolver.is_reserved(name)
    )
    if reserved_names := sorted(reserved):
        raise ValidationError(f"{reserved_names[0]} is a reserved variable name")
    render_variables = {} if agent_layers is None else agent_layers.resolver.to_run_variables()
    return {**request.variables, **render_variables, **inputs.to_run_variables()}


def _frozen_variables(run: Run) -> Mapping[str, str]:
    """Return the variables for another run on this snapshot, original date included."""
    return {**run_prompt_inputs(run).to_run_variables(), **run.variables}


def _plan_replay(original: Run, request: RunRequest) -> _RunPlan:
    """Plan a run with the snapshot and variables of the original."""
    if request.mode not in {None, original.mode}:
        raise ValidationError(f"the replayed run has scope {original.mode}")
    require_snapshot(original, Conflict)
    workflow = request.workflow or original.workflow
    snapshot, variables = original.snapshot, _frozen_variables(original)
    return _RunPlan(snapshot, original.scope, workflow, original.mode, variables, original)


async def _plan_child(ports: Ports, parent: Run, request: RunRequest) -> _RunPlan:
    """Plan a run in its parent's workspace; a child of a shared run is shared.

    It uses the current stack, unless it shares the parent's snapshot.
    """
    mode = Audience.SHARED if parent.mode is Audience.SHARED else request.mode or parent.mode
    workflow = request.workflow or parent.workflow
    if request.share_parent:
        require_snapshot(parent, Conflict)
        variables = _frozen_variables(parent)
        return _RunPlan(parent.snapshot, parent.scope, workflow, mode, variables, parent)
    stack = await current_stack(ports, parent)
    return await _with_current_variables(
        ports, _RunPlan(stack, parent.scope, workflow, mode, {}), stack, request
    )


async def _verify_takeover(ports: Ports, snapshot_owner: Run, started: Run) -> None:
    """Cancel the run if the reused snapshot may have been pruned. Raises Conflict.

    A deleted snapshot is never restored, so a snapshot that exists now existed throughout.
    """
    [owner_run] = await ports.runs.get(snapshot_owner.tenant, [snapshot_owner.id])
    if owner_run is None or not owner_run.snapshot_kept:
        await apply_update(ports, started, RunChange(RunStatus.CANCELLED, keep_snapshot=False))
        raise Conflict(f"run {snapshot_owner.id} has no files: {SNAPSHOT_DELETED}")


async def get(ports: Ports, actor: Actor, id: str) -> Run:
    """Get a run of the tenant, and of the caller's scope if confined.

    Raises NotFound, also for a run of an agent that the caller may not open.
    """
    try:
        [run] = await ports.runs.get(actor.tenant, [parse_identifier(id)])
    except ValidationError:
        raise NotFound("no such run") from None
    if run is None or (actor.is_confined and run.scope != actor.scope):
        raise NotFound(f"no such run: {id}")
    agent = _agent_of(run)
    if agent is not None and agent not in await find_open_agents(ports, actor, [agent]):
        raise NotFound(f"no such run: {id}")
    return run


def _agent_of(run: Run) -> str | None:
    return run.scope.name if run.scope.kind is ScopeKind.AGENT else None


async def list_runs(  # noqa: PLR0913 - filters of a listing
    ports: Ports,
    actor: Actor,
    *,
    agent: str | None = None,
    workspace: str | None = None,
    session: str | None = None,
    status: RunStatus | None = None,
    start: TimestampMs = 0,
    end: TimestampMs | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Run]:
    """List runs, newest first, optionally of one agent, its session, or one workspace.

    The first page has their number, unless the caller may not open all of them.

    Omits those of agents that the caller may not open.
    """
    before = validate_cursor(cursor, "run")
    if session is not None and agent is None:
        raise ValidationError("a sessionId needs the agentId of its agent")
    session_id = None if session is None else parse_session_id(session)
    scope = actor.scope if actor.is_confined else None
    if agent is not None:
        scope = (await stacks.agent_stack(ports, actor, agent))[0]
    elif workspace is not None:
        scope = (await stacks.workspace_stack(ports, actor, workspace))[0]

    filter = RunFilter(scope, session_id, status, start, end)

    async def load_page(before: str, limit: int) -> Page[Run]:
        rows = await ports.runs.list(actor.tenant, filter, before=before, limit=limit + 1)
        has_more = len(rows) > limit
        total: int | None = None
        if not before:
            total = await ports.runs.count(actor.tenant, filter) if has_more else len(rows)
        return Page(rows[:limit], rows[limit - 1].id if has_more else None, total)

    if scope is not None:
        return await load_page(before, limit)
    return await list_open(ports, actor, load_page, _agent_of, cursor=before, limit=limit)


async def abandon_start(ports: Ports, run: Run, key: IdempotencyKey | None) -> None:
    """Cancel a run whose start failed afterwards, so that a repeated request starts another.

    Without a store it stays.
    """
    with suppress(Exception):
        await apply_update(ports, run, RunChange(RunStatus.CANCELLED))
        if key is not None:
            await ports.idempotency.unmark(key)


async def update(
    ports: Ports,
    actor: Actor,
    id: str,
    *,
    status: RunStatus | None = None,
    reason: str | None = None,
    keep_snapshot: bool | None = None,
) -> Run:
    """End a run or delete its snapshot. Raises Conflict for an invalid transition.

    A reason explains the status; secrets in it are redacted. Raises ValidationError for a reason
    without a status, and for the status that only the server sets.
    """
    if status is RunStatus.ABANDONED:
        raise ValidationError("a run becomes abandoned by itself, when it stops reporting")
    if reason is not None:
        if status is None:
            raise ValidationError("a reason needs a status")
        reason = (await load_rules(ports, actor.tenant)).redact_text(reason)
    change = RunChange(status, keep_snapshot, reason)
    return await apply_update(ports, await get(ports, actor, id), change)
