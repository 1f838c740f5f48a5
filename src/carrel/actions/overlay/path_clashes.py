"""File or directory: decided over all layers that agents compose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access_audit import has_full_access
from carrel.actions.overlay.followers import iter_agent_layers, iter_followers
from carrel.actions.overlay.stacks import load_related_scopes
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.accounts import tenant_from_record
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.agents.template import template_from_record
from carrel.core.errors import Conflict, Refusal, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.path_clashes import PathClash, find_clashes
from carrel.core.store.commit import PathFree
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_SHARED_KINDS: Final = frozenset({ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})


class LayerClash(Struct, frozen=True):
    """Existing path of another layer that does not allow a path to be a file."""

    layer: str
    """Kind of the layer, with the slug of an agent: `agent marco`, `template`, `defaults`."""
    path: Path


async def check_new_path(ports: Ports, stack: Stack, path: Path, classes: FileClassRules) -> Stack:
    """Check a path that a layer of agents may get, if it has none yet.

    Returns the scopes in which the commit must check it once more, since they can change until
    then. Raises ValidationError if it collides with a protected path in letter case, and Conflict
    if an agent above a shared layer has it as a directory or a parent of it as a file.
    """
    checked = await check_new_paths(ports, stack, (path,), classes)
    for refusal in checked.refusals.values():
        raise refusal
    return checked.scopes[path]


class CheckedPaths(Struct, frozen=True):
    """Paths that a layer may get, and those that it may not."""

    scopes: Mapping[Path, Stack]
    """Scopes in which the commit must check each path once more."""
    refusals: Mapping[Path, Refusal] = {}


async def check_new_paths(
    ports: Ports,
    stack: Stack,
    paths: Sequence[Path],
    classes: FileClassRules,
    deleted: Collection[Path] = (),
) -> CheckedPaths:
    """Check paths that a layer of agents may get together, like `check_new_path`.

    `deleted` are paths that it loses at the same time.
    """
    kind = stack[0].kind
    is_shared, colliding = kind in _SHARED_KINDS, {p for p in paths if classes.may_collide(p)}
    if not is_shared and not (kind is ScopeKind.AGENT and colliding):
        return CheckedPaths(dict.fromkeys(paths, stack))
    related_scopes = await load_related_scopes(ports, stack)
    trees = await ports.trees.read(stack, paths)
    new_paths = [path for path in paths if not any(tree.entry(path) for tree in trees)]
    scopes = dict.fromkeys(paths, related_scopes)
    refusals: dict[Path, Refusal] = {}
    if new_colliding := colliding.intersection(new_paths):
        related = await ports.trees.read(related_scopes)
        existing = (*_live_paths(related, stack[0], deleted), *new_paths)
        refusals.update(_find_collisions(new_colliding, existing, classes))
    if not is_shared or not new_paths:
        return CheckedPaths(scopes, refusals)
    checked_scopes = list(related_scopes)
    async for agents in iter_followers(ports, stack[0]):
        names = _own_scopes(agents)
        for path in new_paths:
            for scope, other in await _find_occupants(ports, tuple(names), path):
                problem = f"{path} cannot be a file: agent {names[scope]} has {other}"
                refusals.setdefault(path, Conflict(problem, path=other.text))
                break
        checked_scopes += names
    return CheckedPaths(scopes | dict.fromkeys(new_paths, tuple(checked_scopes)), refusals)


def _find_collisions(
    new_paths: Collection[Path], existing: Sequence[Path], classes: FileClassRules
) -> Iterator[tuple[Path, ValidationError]]:
    """New paths that collide with another in letter case, where one is protected."""
    for path in new_paths:
        others = (other for other in existing if other != path)
        if (collision := classes.find_colliding_path(path, others)) is not None:
            problem = f"{path} collides on some file systems with {collision}"
            yield path, ValidationError(problem)


def _live_paths(trees: Layers, nearest: Scope, deleted: Collection[Path]) -> Sequence[Path]:
    """Paths of trees, without those that the nearest layer loses."""
    return [
        path
        for tree in trees
        for path in tree.heads
        if tree.scope != nearest or path not in deleted
    ]


async def load_follower_scopes(ports: Ports, layer: Scope) -> Stack:
    """Return the scopes of all agents above a shared layer, pins included."""
    scopes = [
        scope async for agents in iter_followers(ports, layer) for scope in _own_scopes(agents)
    ]
    return tuple(dict.fromkeys(scopes))


def _own_scopes(agents: Sequence[Record]) -> Mapping[Scope, str]:
    """Scopes of agents that are no shared layers, with the slug of an agent."""
    return {
        scope: agent_from_record(agent).slug
        for agent in agents
        for scope in build_stack(agent)
        if scope.kind not in _SHARED_KINDS
    }


async def iter_layer_clashes(
    ports: Ports, layer: Scope, path: Path, actor: Actor | None = None
) -> AsyncIterator[LayerClash]:
    """Iterate over what does not allow a path to be a file of a shared layer.

    With an actor, omits agents that the caller may not open.
    """
    scopes = await load_related_scopes(ports, (layer,))
    for scope, other in await _find_occupants(ports, scopes, path):
        yield LayerClash(scope.kind.value, other)
    async for clash in _iter_follower_clashes(ports, layer, path, actor):
        yield clash


async def is_occupied(ports: Ports, layer: Scope, path: Path, classes: FileClassRules) -> bool:
    """Whether anything does not allow a path to be a new file of a shared layer."""
    try:
        classes.check_path(path)
        await check_new_path(ports, (layer,), path, classes)
    except (ValidationError, Conflict):
        return True
    scopes = await load_related_scopes(ports, (layer,))
    return bool(await _find_occupants(ports, scopes, path))


async def _iter_follower_clashes(
    ports: Ports, layer: Scope, path: Path, actor: Actor | None = None
) -> AsyncIterator[LayerClash]:
    async for agents in iter_followers(ports, layer):
        names = _own_scopes(
            [agent for agent in agents if actor is None or has_full_access(actor, agent)]
        )
        for scope, other in await _find_occupants(ports, tuple(names), path):
            yield LayerClash(f"agent {names[scope]}", other)


async def _find_occupants(ports: Ports, scopes: Stack, path: Path) -> Sequence[tuple[Scope, Path]]:
    """Parents of a path that are files in a scope, and the first path below it in each."""
    occupants = []
    if path.parents:
        for tree in await ports.trees.read(scopes, path.parents):
            occupants += [(tree.scope, parent) for parent in path.parents if tree.entry(parent)]
    for tree in await ports.trees.read(scopes, prefix=f"{path}/"):
        occupants += [(tree.scope, below) for below in sorted(tree.heads)[:1]]
    return occupants


async def check_new_stack(
    ports: Ports, agent: Record, classes: FileClassRules
) -> Sequence[PathFree]:
    """Check an agent's own files against another template. Raises Conflict.

    Returns the checks that the commit must repeat: of its own files in the lower layers, and the
    reverse.
    """
    trees = await ports.trees.read(build_stack(agent))
    paths = {path for tree in trees for path in tree.heads if tree.entry(path)}
    for protected, other in classes.find_collisions(paths):
        raise Conflict(f"{other} collides on some file systems with {protected}", path=other.text)
    for clash in find_clashes(trees):
        if {clash.file_scope.kind, clash.below_scope.kind} - _SHARED_KINDS:
            raise Conflict(
                f"{clash.file} is a file in {clash.file_scope.kind} and a directory in"
                f" {clash.below_scope.kind} with {clash.below}",
                path=clash.file.text,
            )
    shared = tuple(tree.scope for tree in trees if tree.scope.kind in _SHARED_KINDS)
    return [
        PathFree(path, (trees[0].scope,) if tree.scope.kind in _SHARED_KINDS else shared)
        for tree in trees
        for path in tree.heads
        if tree.entry(path)
    ]


async def check_path_clashes(ports: Ports, findings: FindingList) -> None:
    """Report paths that are a file in one layer of a stack and a directory in another."""
    async for tenant in iter_records(ports, "", RecordType.TENANT):
        names = await _load_template_names(ports, tenant.id)
        clashes: dict[PathClash, str] = {}
        defaults, *templates = await ports.trees.read(tuple(names))
        for tree in templates:
            clashes |= dict.fromkeys(find_clashes((tree, defaults)), names[tree.scope])
        async for agent, layers in iter_agent_layers(ports, tenant.id):
            subject = f"agent {agent_from_record(agent).slug}"
            for clash in find_clashes(layers):
                clashes.setdefault(clash, subject)
        slug = tenant_from_record(tenant).slug
        for clash, subject in clashes.items():
            findings.warn(
                f"{subject} of {slug}",
                f"{clash.file} is a file of its {clash.file_scope.kind} and a directory of its"
                f" {clash.below_scope.kind}",
            )


async def _load_template_names(ports: Ports, tenant: str) -> dict[Scope, str]:
    """Names of the shared layers, the defaults first."""
    names = {Scope(tenant, ScopeKind.DEFAULTS, ""): "defaults"}
    async for record in iter_records(ports, tenant, RecordType.TEMPLATE):
        scope = Scope(tenant, ScopeKind.TEMPLATE, record.id)
        names[scope] = f"template {template_from_record(record).slug}"
    return names
