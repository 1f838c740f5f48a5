"""Pin reviews: status, accept for one or all agents, roll back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from carrel.actions.blob_contents import load_contents
from carrel.actions.overlay import bulk_roll_back
from carrel.actions.overlay.pin_review_session import (
    ROLL_BACK_PREFIX,
    BulkOutcome,
    PinReviewSession,
    accept_reason,
    describe_change,
    find_previous_review,
    start_review,
)
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import get_by_id_or_slug
from carrel.actions.retry import MAX_ATTEMPTS, retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record, by_template_index
from carrel.core.agents.layers import build_stack
from carrel.core.agents.private_access import require_full_access
from carrel.core.errors import Busy, NotFound
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, Stack
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.entry import Head
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import CorruptContent, Ports

_AGENT_PAGE_SIZE: Final = 5_000
"""Agents read per query in a bulk change."""
ChangeEach: TypeAlias = Callable[
    [PinReviewSession, Sequence[Record]], Awaitable[Mapping[str, BulkOutcome]]
]
"""Changes many agents and returns their outcomes by id."""


class PinReview(Struct, frozen=True):
    """Pin status of a file with the pinned and the latest content."""

    pin: PinStatus
    pinned: bytes | CorruptContent | None
    latest: bytes | CorruptContent | None


async def load_reviews(ports: Ports, actor: Actor, name: str) -> tuple[PinReview, ...]:
    """Load every pinned file the agent has or could have, by path. Raises NotFound.

    An unreadable content yields its error only.
    """
    [agent_pins] = await load_pin_statuses(ports, actor, [await _get_agent(ports, actor, name)])
    blobs = {blob for pin in agent_pins for blob in (pin.pinned, pin.latest) if blob}
    contents = await load_contents(ports, blobs)
    return tuple(
        PinReview(
            pin,
            contents[pin.pinned.digest] if pin.pinned else None,
            contents[pin.latest.digest] if pin.latest else None,
        )
        for pin in agent_pins
    )


async def load_pin_statuses(
    ports: Ports, actor: Actor, agents: Sequence[Record]
) -> tuple[tuple[PinStatus, ...], ...]:
    """Load the pin statuses of many agents without contents, with one read.

    Raises NotFound or Forbidden if the caller may not open one of the agents.
    """
    for agent in agents:
        require_full_access(actor, agent)
    stacks = [build_stack(agent) for agent in agents]
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    statuses = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        paths = sorted({path for tree in layers for path in tree.heads})
        pinned_paths = [path for path in paths if classes.class_of(path) is FileClass.PINNED]
        statuses.append(tuple(pins.pin_status(path, layers) for path in pinned_paths))
    return tuple(statuses)


@retry_on_conflict()
async def accept(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    reviewed: Digest,
    idempotency_key: IdempotencyKey | None = None,
) -> PinStatus:
    """Move an agent's pin to the reviewed version.

    Raises WorkspaceConflict if the offered version changed since.
    """
    review = await start_review(ports, actor, path, idempotency_key)
    agent = await _get_agent(ports, actor, name)
    stack = build_stack(agent)
    layers = await ports.trees.read(stack, (path,))
    planned = pins.plan_accept(layers, path, reviewed)
    if planned is None:
        return pins.pin_status(path, layers)
    await review.require_readable(planned)
    head = await review.commit(agent, planned, accept_reason(layers, planned))
    if head is None:
        raise Busy.with_conflicts(str(path))
    return _status_after(stack, layers, path, head)


async def accept_for_all(
    ports: Ports, actor: Actor, template: str | None, path: Path, reviewed: Digest
) -> tuple[BulkOutcome, ...]:
    """Accept for every agent of a template; return one outcome each, by id.

    Without a template: for every agent of the tenant that inherits the file from the defaults. A
    refusal for one agent does not stop the others. Reads 5,000 agents per query and commits 1,000
    per transaction. Raises NotFound if there is nothing to accept.
    """
    review = await start_review(ports, actor, path)
    template_id = await _load_offer(ports, actor, template, path)
    source = None if template_id else ScopeKind.DEFAULTS

    async def accept_each(
        review: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        return await review.accept_each(agents, source, reviewed)

    return await _change_for_all(review, template_id, accept_each)


async def roll_back_for_all(
    ports: Ports, actor: Actor, template: str | None, path: Path, accepted: Digest
) -> tuple[BulkOutcome, ...]:
    """Roll back what was accepted together; return one outcome each, by id.

    For every agent of a template, or else for all that do not have the file from their template.
    An agent whose pin has moved since gets a Conflict that names it; agents that never accepted
    have no outcome. Queries and transactions as in `accept_for_all`.
    """
    review = await start_review(ports, actor, path)
    template_id = None
    if template is not None:
        record = await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)
        template_id = record.id

    async def roll_back_each(
        review: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        return await bulk_roll_back.roll_back_each(review, agents, template_id, accepted)

    return await _change_for_all(review, template_id, roll_back_each)


async def _change_for_all(
    review: PinReviewSession, template: str | None, change_each: ChangeEach
) -> tuple[BulkOutcome, ...]:
    """Change every agent of a template, or of the tenant, in pages."""
    results: list[BulkOutcome] = []
    after = ""
    while True:
        agents = await review.ports.records.list(
            review.actor.tenant,
            RecordType.AGENT,
            index_key=by_template_index(template) if template else "",
            after=after,
            limit=_AGENT_PAGE_SIZE,
        )
        results += await _change_batch(review, template, agents, change_each)
        if len(agents) < _AGENT_PAGE_SIZE:
            return tuple(results)
        after = agents[-1].id
        review = await start_review(review.ports, review.actor, review.path)


async def _load_offer(ports: Ports, actor: Actor, template: str | None, path: Path) -> str | None:
    """Return the template's id, None for the defaults. Raises NotFound if it lacks the file."""
    scopes = [Scope(actor.tenant, ScopeKind.DEFAULTS, "")]
    id = None
    if template is not None:
        id = (await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)).id
        scopes.append(Scope(actor.tenant, ScopeKind.TEMPLATE, id))
    if upstream_blob(path, await ports.trees.read(scopes, (path,))) is None:
        raise NotFound(f"no such file to accept: {path}")
    return id


async def _change_batch(
    review: PinReviewSession,
    template: str | None,
    agents: Sequence[Record],
    change_each: ChangeEach,
) -> Sequence[BulkOutcome]:
    """Change a batch of agents; retries those that conflicted."""
    results: dict[str, BulkOutcome] = {}
    pending = agents
    for _ in range(MAX_ATTEMPTS):
        results |= await change_each(review, pending)
        conflicted = [id for id, result in results.items() if isinstance(result.problem, Busy)]
        if not conflicted:
            break
        review = await start_review(review.ports, review.actor, review.path)
        reloaded = await review.ports.records.get(review.actor.tenant, RecordType.AGENT, conflicted)
        pending = [
            agent
            for agent in reloaded
            if agent and (not template or agent_from_record(agent).template_id == template)
        ]
        for id in set(conflicted) - {agent.id for agent in pending}:
            results[id] = BulkOutcome(
                id, problem=NotFound("the agent no longer follows the template")
            )
    return [results[agent.id] for agent in agents if agent.id in results]


@retry_on_conflict()
async def roll_back(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    version: int | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> PinStatus:
    """Move the pin back to the previously reviewed version, or to a given version."""
    review = await start_review(ports, actor, path, idempotency_key)
    agent = await _get_agent(ports, actor, name)
    stack = build_stack(agent)
    layers = await ports.trees.read(stack, (path,))
    previous = await find_previous_review(ports, layers, path, version)
    planned = pins.plan_roll_back(layers, path, previous)
    await review.require_readable(planned)
    is_own_version = not any(previous is tree.heads.get(path) for tree in layers[1:])
    target = f"its version {previous.stack_version}" if is_own_version else "its initial pin"
    reason = f"{ROLL_BACK_PREFIX}{path.text} back to {target}"
    reason += describe_change(layers, planned)
    head = await review.commit(agent, planned, reason)
    if head is None:
        raise Busy.with_conflicts(str(path))
    return _status_after(stack, layers, path, head)


async def load_reviewed(
    ports: Ports, actor: Actor, name: str, path: Path, number: int
) -> PinStatus:
    """Return what a committed review left: the pin at this version of the agent's file."""
    await start_review(ports, actor, path)
    stack = build_stack(await _get_agent(ports, actor, name))
    layers = await ports.trees.read(stack, (path,))
    [version] = await ports.trees.versions([(stack[0], path, number)])
    if version is None:
        return pins.pin_status(path, layers)
    return _status_after(stack, layers, path, version.head)


async def _get_agent(ports: Ports, actor: Actor, name: str) -> Record:
    agent = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)
    require_full_access(actor, agent, name)
    return agent


def _status_after(stack: Stack, layers: Layers, path: Path, head: Head) -> PinStatus:
    agent_tree = Tree(stack[0], head.revision, {path: head})
    return pins.pin_status(path, (agent_tree, *layers[1:]))
