"""Pin reviews of one agent: status, accept, roll back. For many agents: bulk_reviews."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.blob_contents import load_contents
from carrel.actions.overlay.pin_review_session import (
    accept_reason,
    describe_change,
    find_previous_review,
    start_review,
)
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import get_by_id_or_slug
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.agents.private_access import require_full_access
from carrel.core.errors import Busy
from carrel.core.identifiers import Digest, Path, Stack
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.file_reviews import ROLL_BACK_PREFIX
from carrel.core.overlay.pins import PinStatus
from carrel.core.overlay.review_records import ReviewDecision
from carrel.core.store.entry import Head
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import CorruptContent, Ports


class PinReview(Struct, frozen=True):
    """Pin status of a file with the served, the pinned and the latest content."""

    pin: PinStatus
    pinned: bytes | CorruptContent | None
    latest: bytes | CorruptContent | None
    served: bytes | CorruptContent | None


async def load_reviews(ports: Ports, actor: Actor, name: str) -> tuple[PinReview, ...]:
    """Load every pinned file the agent has or could have, by path. Raises NotFound.

    An unreadable content yields its error only.
    """
    [agent_pins] = await load_pin_statuses(
        ports, actor, [await get_reviewed_agent(ports, actor, name)]
    )
    blobs = {blob for pin in agent_pins for blob in (pin.served, pin.pinned, pin.latest) if blob}
    contents = await load_contents(ports, blobs)
    return tuple(
        PinReview(
            pin,
            contents[pin.pinned.digest] if pin.pinned else None,
            contents[pin.latest.digest] if pin.latest else None,
            contents[pin.served.digest] if pin.served else None,
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
        paths = sorted({path for tree in layers for path in (*tree.heads, *tree.reviewed_offers)})
        pinned_paths = [path for path in paths if classes.class_of(path) is FileClass.PINNED]
        statuses.append(tuple(pins.pin_status(path, layers) for path in pinned_paths))
    return tuple(statuses)


@retry_on_conflict()
async def accept(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    reviewed: Digest | None,
    idempotency_key: IdempotencyKey | None = None,
) -> PinStatus:
    """Move an agent's pin to the reviewed version; None accepts that the file was removed.

    Raises WorkspaceConflict if the offered version changed since.
    """
    review = await start_review(ports, actor, path, idempotency_key)
    agent = await get_reviewed_agent(ports, actor, name)
    stack = build_stack(agent)
    layers = await ports.trees.read(stack, (path,))
    planned = pins.plan_accept(layers, path, reviewed)
    if planned is None:
        return pins.pin_status(path, layers)
    await review.require_readable(planned)
    record = review.record(ReviewDecision.ACCEPTED, reviewed)
    head = await review.commit(agent, planned, accept_reason(layers, planned), record)
    if head is None:
        raise Busy.with_conflicts(str(path))
    return status_after(stack, layers, path, head)


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
    agent = await get_reviewed_agent(ports, actor, name)
    stack = build_stack(agent)
    layers = await ports.trees.read(stack, (path,))
    previous = await find_previous_review(ports, layers, path, version)
    planned = pins.plan_roll_back(layers, path, previous)
    await review.require_readable(planned)
    is_own_version = not any(previous is tree.heads.get(path) for tree in layers[1:])
    target = f"its version {previous.stack_version}" if is_own_version else "its initial pin"
    reason = f"{ROLL_BACK_PREFIX}{path.text} back to {target}"
    reason += describe_change(layers, planned)
    entry = planned.write.entry
    reviewed = entry.base.digest if entry and entry.base else None
    record = review.record(ReviewDecision.ROLLED_BACK, reviewed)
    head = await review.commit(agent, planned, reason, record)
    if head is None:
        raise Busy.with_conflicts(str(path))
    return status_after(stack, layers, path, head)


async def load_reviewed(
    ports: Ports, actor: Actor, name: str, path: Path, number: int
) -> PinStatus:
    """Return what a committed review left: the pin at this version of the agent's file."""
    await start_review(ports, actor, path)
    stack = build_stack(await get_reviewed_agent(ports, actor, name))
    layers = await ports.trees.read(stack, (path,))
    [version] = await ports.trees.versions([(stack[0], path, number)])
    if version is None:
        return pins.pin_status(path, layers)
    return status_after(stack, layers, path, version.head)


async def get_reviewed_agent(ports: Ports, actor: Actor, name: str) -> Record:
    agent = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)
    require_full_access(actor, agent, name)
    return agent


def status_after(stack: Stack, layers: Layers, path: Path, head: Head) -> PinStatus:
    agent_tree = Tree(stack[0], head.revision, {path: head})
    return pins.pin_status(path, (agent_tree, *layers[1:]))
