"""File or directory: decided over all layers that agents compose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access
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
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.path_clashes import PathClash, find_clashes
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_SHARED_KINDS: Final = frozenset({ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})


class LayerClash(Struct, frozen=True):
    """Existing path of another layer that does not allow a path to be a file."""

    layer: str
    """Kind of the layer, with the slug of an agent: `agent marco`, `template`, `defaults`."""
    path: Path


async def check_new_path(ports: Ports, stack: Stack, path: Path, classes: FileClassRules) -> None:
    """Check a path that a layer of agents may get, if it has none yet.

    Raises ValidationError if it collides with a protected path in letter case, and Conflict if an
    agent above a shared layer has it as a directory or a parent of it as a file.
    """
    for refusal in (await find_refused_paths(ports, stack, (path,), classes)).values():
        raise refusal


async def find_refused_paths(
    ports: Ports,
    stack: Stack,
    paths: Sequence[Path],
    classes: FileClassRules,
    deleted: Collection[Path] = (),
) -> Mapping[Path, Refusal]:
    """Find the paths that a layer may not get together, with the refusals of `check_new_path`.

    `deleted` are paths that the nearest layer loses at the same time.
    """
    kind = stack[0].kind
    is_shared, colliding = kind in _SHARED_KINDS, [p for p in paths if classes.may_collide(p)]
    if not is_shared and not (kind is ScopeKind.AGENT and colliding):
        return {}
    trees = await ports.trees.read(stack, paths)
    new_paths = [path for path in paths if not any(tree.entry(path) for tree in trees)]
    refusals: dict[Path, Refusal] = {}
    if new_colliding := [path for path in new_paths if path in colliding]:
        existing = await _load_paths(ports, stack, deleted)
        for path in new_colliding:
            others = (other for other in (*existing, *new_paths) if other != path)
            if (collision := classes.find_colliding_path(path, others)) is not None:
                problem = f"{path} collides on some file systems with {collision}"
                refusals[path] = ValidationError(problem)
    for path in new_paths if is_shared else ():
        async for clash in _iter_follower_clashes(ports, stack[0], path):
            problem = f"{path} cannot be a file: {clash.layer} has {clash.path}"
            refusals.setdefault(path, Conflict(problem, path=clash.path.text))
            break
    return refusals


async def _load_paths(ports: Ports, stack: Stack, deleted: Collection[Path]) -> Sequence[Path]:
    """Load the paths of a layer and all that agents compose with it."""
    trees = await ports.trees.read(await load_related_scopes(ports, stack))
    return [
        path
        for tree in trees
        for path in tree.heads
        if tree.scope != stack[0] or path not in deleted
    ]


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


async def is_occupied(ports: Ports, layer: Scope, path: Path) -> bool:
    """Whether anything does not allow a path to be a file of a shared layer."""
    async for _ in iter_layer_clashes(ports, layer, path):
        return True
    return False


async def _iter_follower_clashes(
    ports: Ports, layer: Scope, path: Path, actor: Actor | None = None
) -> AsyncIterator[LayerClash]:
    async for agents in iter_followers(ports, layer):
        names = {
            scope: agent_from_record(agent).slug
            for agent in agents
            if actor is None or has_full_access(actor, agent)
            for scope in build_stack(agent)
            if scope.kind not in _SHARED_KINDS
        }
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


async def check_new_stack(ports: Ports, agent: Record, classes: FileClassRules) -> None:
    """Check an agent's own files against another template. Raises Conflict."""
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
