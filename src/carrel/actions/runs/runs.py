"""Runs: freezing a workspace, reading what was frozen, and telling what became of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.prompt_inputs import attached, current_prompt_inputs, run_prompt_inputs
from carrel.actions.records import Page, validate_cursor
from carrel.actions.timezones import day
from carrel.core.access import Actor
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, identifier
from carrel.core.overlay.agent_files import RenderContext
from carrel.core.overlay.compose import File, Workspace, compose, resolve
from carrel.core.prompt.assembly import MEMORY, SHARED
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.workspace_notes import WorkspaceNotes
from carrel.core.runs import NOOP, Audience, Run, RunStatus, SnapshotLayer, settled
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_ATTEMPTS: Final = 10
_WORKFLOW: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,254}[A-Za-z0-9._/@+-])?")
LET_GO: Final = "its snapshot was let go"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a caller asks for; what it leaves open follows from the parent or the original."""

    workflow: str = ""
    agent: str | None = None
    """By id or slug; None is the caller's own workspace."""
    workspace: str | None = None
    """A workspace of the tenant, by name; None is the caller's own."""
    parent: str | None = None
    share_parent: bool = False
    """See exactly what the parent sees, rather than the workspace as it is now."""
    replay_of: str | None = None
    mode: Audience | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the caller wants to remember with it; none of these fills in a placeholder."""


@dataclass(frozen=True, slots=True)
class _RunPlan:
    layers: Sequence[Scope | SnapshotLayer]
    scope: Scope
    workflow: str
    mode: Audience
    variables: Mapping[str, str]
    held_by: Run | None = None
    """The run whose snapshot is taken over: until ours is recorded, only it holds the files."""
    lineage: AgentLayers | None = None
    """Of the agent whose words these are, where they were asked for now."""
    harness: WorkspaceNotes = WorkspaceNotes()
    """What its workspaces were, at that moment."""


async def start(ports: Ports, actor: Actor, asked: RunRequest) -> Run:
    """Freeze a workspace, at a cost that does not depend on its files, and begin.

    Raises Malformed, Missing, Busy, or Taken where a snapshot that is asked for was let go.
    """
    _check(asked)
    for _ in range(_ATTEMPTS):
        plan = await _plan(ports, actor, asked)
        started = await _recorded(ports, actor, asked, plan)
        if await _is_of_one_moment(ports, plan):
            is_over = started.workflow == NOOP
            return await _changed(ports, started, RunStatus.COMPLETED) if is_over else started
        await _changed(ports, started, RunStatus.CANCELLED, kept=False)
    raise Busy("the agent is being changed by many others")


async def _recorded(ports: Ports, actor: Actor, asked: RunRequest, plan: _RunPlan) -> Run:
    run = Run(
        id=ports.clock.new_id("run"),
        tenant=actor.tenant,
        scope=plan.scope,
        workflow=plan.workflow,
        mode=plan.mode,
        status=RunStatus.RUNNING,
        by=actor.name,
        started=ports.clock.now(),
        parent=asked.parent,
        replay_of=asked.replay_of,
        variables=plan.variables,
    )
    [started] = await ports.runs.start([(run, plan.layers)])
    if plan.held_by is not None:
        await _taken_over(ports, plan.held_by, started)
    return started


async def _is_of_one_moment(ports: Ports, plan: _RunPlan) -> bool:
    """Whether the names are still those that were frozen with the files after them."""
    if plan.lineage is None:
        return True
    agent = plan.lineage.agent
    try:
        now = await load_agent_layers(ports, agent.tenant, agent.id)
    except NotFound:
        return True
    if (now.key, now.agent.revision) != (plan.lineage.key, agent.revision):
        return False
    try:
        return (await current_prompt_inputs(ports, now, plan.mode)).harness == plan.harness
    except NotFound:  # A workspace of it is gone: whoever asks again is told which.
        return False


def _check(asked: RunRequest) -> None:
    if not (asked.workflow or asked.agent or asked.parent or asked.replay_of):
        raise ValidationError("a run needs a workflowId or an agentId")
    if asked.workflow and not _WORKFLOW.fullmatch(asked.workflow):
        raise ValidationError("workflowId is 1 to 256 letters, digits, spaces and . _ : / @ + -")
    if asked.agent is not None and asked.workspace is not None:
        raise ValidationError("a run has an agentId or a workspaceId, not both")
    if asked.share_parent and asked.parent is None:
        raise ValidationError("shareSnapshot needs a parentRunId")
    if asked.share_parent and asked.replay_of is not None:
        raise ValidationError(
            "a run takes the snapshot of its parent or of what it replays, not both"
        )


async def _plan(ports: Ports, actor: Actor, asked: RunRequest) -> _RunPlan:
    parent = await get(ports, actor, asked.parent) if asked.parent is not None else None
    if asked.replay_of is not None:
        plan = _replay(await get(ports, actor, asked.replay_of), asked)
    elif parent is not None:
        plan = await _child(ports, parent, asked)
    else:
        plan = await _fresh(ports, actor, asked)
    if parent is not None and parent.scope != plan.scope:
        raise ValidationError("a child run works in its parent's workspace")
    if parent is not None and parent.mode is Audience.SHARED and plan.mode is Audience.MAIN:
        raise ValidationError("a child of a shared run is shared, and what it would replay is not")
    is_named = asked.agent is not None or asked.workspace is not None
    if is_named and (await _stack(ports, actor, asked))[0] != plan.scope:
        field = "agentId" if asked.agent is not None else "workspaceId"
        raise ValidationError(f"{field} names another workspace than the run that this one follows")
    return plan


async def _stack(ports: Ports, actor: Actor, asked: RunRequest) -> Stack:
    if asked.agent is not None:
        return await stacks.agent_stack(ports, actor, asked.agent)
    if asked.workspace is not None:
        return await stacks.workspace_stack(ports, actor, asked.workspace)
    return await stacks.default_stack(ports, actor)


async def _fresh(ports: Ports, actor: Actor, asked: RunRequest) -> _RunPlan:
    stack = await _stack(ports, actor, asked)
    mode = asked.mode or Audience.MAIN
    return await _spoken(ports, _RunPlan(stack, stack[0], asked.workflow, mode, {}), stack, asked)


async def _spoken(ports: Ports, plan: _RunPlan, stack: Stack, asked: RunRequest) -> _RunPlan:
    """The plan with the words of this moment."""
    own = stack[0]
    if own.kind is not ScopeKind.AGENT:
        inputs = PromptInputs(Audience.MAIN, day(ports.clock.now(), None))
        return dataclasses.replace(plan, variables=_words(None, asked, inputs))
    agent_layers = await load_agent_layers(ports, own.tenant, own.name)
    inputs = await current_prompt_inputs(ports, agent_layers, Audience.MAIN)
    return dataclasses.replace(
        plan,
        layers=(*stack, *attached(own.tenant, inputs)),
        variables=_words(agent_layers, asked, inputs),
        lineage=agent_layers,
        harness=inputs.harness,
    )


def _words(
    agent_layers: AgentLayers | None, asked: RunRequest, inputs: PromptInputs
) -> Mapping[str, str]:
    """What an agent's files are rendered with, and what of them its prompt is: frozen with them."""
    of_agent = agent_layers is not None
    claimed = (
        name
        for name in asked.variables
        if PromptInputs.claims(name) or of_agent * RenderContext.is_reserved(name)
    )
    if taken := sorted(claimed):
        raise ValidationError(f"{taken[0]} is not for a caller to say")
    seen = {} if agent_layers is None else agent_layers.eye.to_run_variables()
    return {**asked.variables, **seen, **inputs.words()}


def _kept_words(run: Run) -> Mapping[str, str]:
    """What another run needs to see and say the same, though it begins on another day."""
    return {**run_prompt_inputs(run).words(), **run.variables}


def _replay(original: Run, asked: RunRequest) -> _RunPlan:
    """The very vector and variables of the original, so that it reads the same to the byte."""
    if asked.mode not in {None, original.mode}:
        raise ValidationError(f"the run that is replayed has the scope {original.mode}")
    snapshot_layers(original, Conflict)
    workflow = asked.workflow or original.workflow
    vector, variables = original.snapshot, _kept_words(original)
    return _RunPlan(vector, original.scope, workflow, original.mode, variables, original)


async def _child(ports: Ports, parent: Run, asked: RunRequest) -> _RunPlan:
    """In its parent's workspace; what the parent must not tell others, the child must not either.

    Its stack is the one that the workspace has now, unless it shares the parent's snapshot.
    """
    mode = Audience.SHARED if parent.mode is Audience.SHARED else asked.mode or parent.mode
    workflow = asked.workflow or parent.workflow
    if asked.share_parent:
        snapshot_layers(parent, Conflict)
        words = _kept_words(parent)
        return _RunPlan(parent.snapshot, parent.scope, workflow, mode, words, parent)
    stack = await current_stack(ports, parent)
    return await _spoken(ports, _RunPlan(stack, parent.scope, workflow, mode, {}), stack, asked)


async def current_stack(ports: Ports, run: Run) -> Stack:
    """The stack that the run's workspace has now, for those who may know of the run."""
    if run.scope.kind is ScopeKind.AGENT:
        return await stacks.agent_stack(ports, Actor(run.tenant, run.by), run.scope.name)
    return (run.scope,)


async def _taken_over(ports: Ports, held_by: Run, started: Run) -> None:
    """Let go of a run again whose files may have been pruned before it came to hold them.

    A run that is let go stays so: one that is kept now has been kept all the while.
    """
    [found] = await ports.runs.get(held_by.tenant, [held_by.id])
    if found is None or not found.snapshot_kept:
        await _changed(ports, started, RunStatus.CANCELLED, kept=False)
        raise Conflict(f"run {held_by.id} has no files any more: {LET_GO}")


async def get(ports: Ports, actor: Actor, id: str) -> Run:
    """A run that this caller may know of: one of its tenant, and of its scope where it has one."""
    try:
        [run] = await ports.runs.get(actor.tenant, [identifier(id)])
    except ValidationError:
        raise NotFound("there is no run of that id") from None
    if run is None or (actor.is_confined and run.scope != actor.scope):
        raise NotFound(f"there is no run {id}")
    return run


async def page(
    ports: Ports,
    actor: Actor,
    *,
    agent: str | None = None,
    workspace: str | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Run]:
    """Runs newest first, of the agent or the workspace that is named."""
    before = validate_cursor(cursor, "run")
    scope = actor.scope if actor.is_confined else None
    if agent is not None:
        scope = (await stacks.agent_stack(ports, actor, agent))[0]
    elif workspace is not None:
        scope = (await stacks.workspace_stack(ports, actor, workspace))[0]
    found = await ports.runs.list(actor.tenant, scope=scope, before=before, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1].id if more else None)


async def change(
    ports: Ports,
    actor: Actor,
    id: str,
    *,
    status: RunStatus | None = None,
    kept: bool | None = None,
) -> Run:
    """End a run, or let go of what it holds. Raises Taken for what cannot be undone."""
    return await _changed(ports, await get(ports, actor, id), status, kept=kept)


async def _changed(
    ports: Ports, run: Run, status: RunStatus | None, *, kept: bool | None = None
) -> Run:
    for _ in range(_ATTEMPTS):
        wanted = _wanted(ports, run, status, kept)
        if wanted == run or await ports.runs.change(wanted, run):
            return wanted
        [found] = await ports.runs.get(run.tenant, [run.id])
        if found is None:
            raise NotFound(f"there is no run {run.id}")
        run = found
    raise Busy(f"run {run.id} is being changed by many others")


def _wanted(ports: Ports, run: Run, status: RunStatus | None, kept: bool | None) -> Run:
    becomes = settled(run, run.status if status is None else status)
    if kept and not run.snapshot_kept:
        raise Conflict(f"run {run.id} cannot be kept again: {LET_GO}")
    stays = run.snapshot_kept if kept is None else kept
    if not stays and becomes is RunStatus.RUNNING:
        raise Conflict("a run that has not ended needs its snapshot", status=run.status)
    ended = run.ended if becomes is run.status else ports.clock.now()
    snapshot = run.snapshot if stays else ()
    return replace(run, status=becomes, ended=ended, snapshot_kept=stays, snapshot=snapshot)


def snapshot_layers(run: Run, refusal: type[NotFound] | type[Conflict] = NotFound) -> None:
    if not run.snapshot_kept:
        raise refusal(f"run {run.id} has no files any more: {LET_GO}")


async def verify_snapshot_kept(ports: Ports, run: Run) -> None:
    """What was read of a snapshot is true only if the run held it until after the reading."""
    [found] = await ports.runs.get(run.tenant, [run.id])
    if found is None:
        raise NotFound(f"there is no run {run.id}")
    snapshot_layers(found)


async def manifest(ports: Ports, run: Run) -> Workspace:
    """What the run sees, in order of path. Raises Missing where its snapshot was let go."""
    snapshot_layers(run)
    layers, render_context = await ports.trees.read(run.own), render_context_of_run(run)
    workspace = compose(layers) if render_context is None else render_context.compose(layers)
    await verify_snapshot_kept(ports, run)
    return visible(run, workspace)


def visible(run: Run, workspace: Workspace) -> Workspace:
    """What the run may tell of: where others are listening, nothing private."""
    if run.mode is Audience.MAIN:
        return workspace
    return Workspace({path: file for path, file in workspace.files.items() if path in SHARED})


async def file(ports: Ports, run: Run, path: Path) -> tuple[File, bytes]:
    """A file as the run sees it, however it has changed since. Raises Missing."""
    found = (await find_files(ports, run, [path])).get(path)
    if found is None:
        raise NotFound(f"run {run.id} sees no {path}")
    content = await files.read_content(ports, found)
    await verify_snapshot_kept(ports, run)
    return found, content


async def contents(ports: Ports, run: Run, seen: Workspace) -> files.FileContents:
    """The bytes of files that the run sees, in one batch; what cannot be had fails by name."""
    found = await files.read_contents(ports, seen)
    await verify_snapshot_kept(ports, run)
    return found


async def find_files(ports: Ports, run: Run, paths: Collection[Path]) -> Mapping[Path, File]:
    """What the run sees at these paths, where it sees anything, without content."""
    snapshot_layers(run)
    asked = [path for path in paths if run.mode is Audience.MAIN or path in SHARED]
    layers, render_context = await ports.trees.read(run.own, asked), render_context_of_run(run)
    shown = (
        (
            path,
            resolve(path, layers)
            if render_context is None
            else render_context.resolve(path, layers),
        )
        for path in asked
    )
    return {path: file for path, file in shown if file}


async def memories(ports: Ports, run: Run) -> Mapping[str, File]:
    """MEMORY.md of each workspace that was attached, by its id, as it was; where it was one."""
    if run.mode is not Audience.MAIN or not run.attached_layers:
        return {}
    snapshot_layers(run)
    return memories_in(await ports.trees.read(run.attached_layers, [MEMORY]))


def memories_in(trees: Sequence[Tree]) -> Mapping[str, File]:
    """MEMORY.md of each of these workspaces, by its id."""
    found = ((tree.scope.name, resolve(MEMORY, (tree,))) for tree in trees)
    return {workspace: file for workspace, file in found if file}


def render_context_of_run(run: Run) -> RenderContext | None:
    """The eyes with which the run sees an agent's workspace, as they were when it started."""
    return (
        RenderContext.from_run_variables(run.variables)
        if run.scope.kind is ScopeKind.AGENT
        else None
    )
