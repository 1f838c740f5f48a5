"""Effects of a change on an agent, as a dry run of many agents names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from carrel.actions.accounts.keys import by_agent_index
from carrel.actions.agents.agent_plans import AgentPlan
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.memory.memory import agent_index_key
from carrel.core.overlay.agent_resolution import resolve_as
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.pins import pin_status
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports


class FileEffect(StrEnum):
    """Effect of a change on one file of an agent."""

    ADDED = "added"
    REMOVED = "removed"
    CONTENT = "content"
    """Another content is served."""
    SOURCE = "source"
    """The same content comes from another layer."""
    OFFERED = "offered"
    """The pin stays, and another content is offered for review."""
    REWRITTEN = "rewritten"
    """The managed file is written anew, as USER.md for another person."""


class ErasedCounts(Struct, frozen=True):
    """What is erased together with an agent."""

    sessions: int
    memories: int
    keys: int
    files: int
    """Files of its own."""


class ChangeEffects(Struct, frozen=True):
    """Effects on one agent."""

    files: Mapping[Path, FileEffect] = {}
    erased: ErasedCounts | None = None


async def compare_files(
    ports: Ports, classes: FileClassRules, plans: Sequence[AgentPlan]
) -> Mapping[str, ChangeEffects]:
    """Effects on the files of each agent, by id, with at most one read of trees."""
    stacks = [(build_stack(plan.existing), build_stack(plan.changed)) for plan in plans]
    moved = [stack for before, after in stacks if before != after for stack in (before, after)]
    scopes = tuple(dict.fromkeys(scope for stack in moved for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True)) if scopes else {}
    effects: dict[str, ChangeEffects] = {}
    for plan, (before, after) in zip(plans, stacks, strict=True):
        files: dict[Path, FileEffect] = {}
        if before != after:
            layers = [[trees[scope] for scope in stack] for stack in (before, after)]
            files = _compare(classes, *layers)
        files |= {write.path: FileEffect.REWRITTEN for write in plan.drafts.writes}
        effects[plan.existing.id] = ChangeEffects(dict(sorted(files.items())))
    return effects


def _compare(classes: FileClassRules, before: Layers, after: Layers) -> dict[Path, FileEffect]:
    paths = {path for tree in (*before, *after) for path in tree.heads}
    effects = {}
    for path in paths:
        if effect := _compare_file(classes.class_of(path), path, before, after):
            effects[path] = effect
    return effects


def _compare_file(
    file_class: FileClass, path: Path, before: Layers, after: Layers
) -> FileEffect | None:
    if file_class is FileClass.PINNED:
        old_pin, new_pin = pin_status(path, before), pin_status(path, after)
        is_new_offer = new_pin.latest != old_pin.latest or not old_pin.update_available
        return FileEffect.OFFERED if new_pin.update_available and is_new_offer else None
    old, new = resolve_as(file_class, path, before), resolve_as(file_class, path, after)
    if old is None or new is None:
        return None if old is new else FileEffect.ADDED if old is None else FileEffect.REMOVED
    if old.blob != new.blob:
        return FileEffect.CONTENT
    return None if old.source.kind is new.source.kind else FileEffect.SOURCE


async def count_erased(
    ports: Ports, tenant: str, agents: Sequence[Record]
) -> Mapping[str, ChangeEffects]:
    """Effects of a deletion of each agent, by id, with four queries."""
    ids = [agent.id for agent in agents]
    sessions = await ports.sessions.count(tenant, ids)
    memories = await ports.records.count(
        tenant, RecordType.MEMORY, [agent_index_key(id) for id in ids]
    )
    keys = await ports.records.count(tenant, RecordType.KEY, [by_agent_index(id) for id in ids])
    scopes: Stack = tuple(Scope(tenant, ScopeKind.AGENT, id) for id in ids)
    files = [len(tree.heads) for tree in await ports.trees.read(scopes)]
    counts = zip(sessions, memories, keys, files, strict=True)
    return {
        id: ChangeEffects(erased=ErasedCounts(*numbers))
        for id, numbers in zip(ids, counts, strict=True)
    }
