"""File or directory, and letter case: decided over all layers that agents compose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access
from carrel.actions.overlay.followers import followers_index, iter_agent_layers, iter_followers
from carrel.actions.overlay.stacks import load_related_scopes
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import NO_DRAFTS, FileDrafts, iter_records
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
from carrel.core.overlay.path_clashes import find_clashes
from carrel.core.store.commit import Expect, ExpectPathFree, PathOccupant
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_SHARED_KINDS: Final = frozenset({ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})


class LayerClash(Struct, frozen=True):
    """Existing path of another layer that does not allow a path to be a file."""

    layer: str
    """Kind of the layer, with the slug of an agent: `agent marco`, `template`, `defaults`."""
    path: Path


async def draft_path_check(
    ports: Ports, stack: Stack, path: Path, classes: FileClassRules
) -> FileDrafts:
    """Check a path that a layer of agents may get; return what the commit must check once more.

    Raises ValidationError if it collides with a protected path in letter case, and Conflict if an
    agent above a shared layer has it as a directory or a parent of it as a file.
    """
    kind, may_collide = stack[0].kind, classes.may_collide(path)
    is_shared = kind in _SHARED_KINDS
    if not is_shared and not (kind is ScopeKind.AGENT and may_collide):
        return NO_DRAFTS
    for tree in await ports.trees.read(stack, (path,)):
        if tree.entry(path):
            return FileDrafts(expects=(Expect(tree.scope, path, live=True),))
    check = ExpectPathFree(
        path,
        await load_related_scopes(ports, stack),
        followers_index(stack[0]) if is_shared else None,
        partial(classes.collide, path) if may_collide else None,
    )
    for occupant in sorted(
        await ports.trees.find_occupants(check), key=lambda occupant: occupant.path
    ):
        await _check_occupant(ports, check, occupant)
    return FileDrafts(path_checks=(check,))


async def _check_occupant(ports: Ports, check: ExpectPathFree, occupant: PathOccupant) -> None:
    """Raise ValidationError for a variant, and Conflict for the path of an agent above.

    Paths of the shared layers are left to the commit, which may delete them.
    """
    path, other, scope = check.path, occupant.path, occupant.scope
    if scope is None:
        raise ValidationError(f"{path} collides on some file systems with {other}")
    if scope in check.scopes:
        return
    async for agents in iter_followers(ports, check.scopes[0]):
        if slug := _own_scopes(agents).get(scope):
            raise Conflict(f"{path} cannot be a file: agent {slug} has {other}", path=other.text)


class PathDrafts(Struct, frozen=True):
    """New paths of a layer: drafts of the allowed ones, refusals of the others."""

    drafts: Mapping[Path, FileDrafts]
    """What the commit must check once more for each path."""
    refusals: Mapping[Path, Refusal]


async def draft_path_checks(
    ports: Ports, stack: Stack, paths: Sequence[Path], classes: FileClassRules
) -> PathDrafts:
    """Check paths that a layer may get together, like `draft_path_check`."""
    drafts: dict[Path, FileDrafts] = {}
    refusals: dict[Path, Refusal] = {}
    for path in paths:
        try:
            drafts[path] = await draft_path_check(ports, stack, path, classes)
        except Refusal as refusal:
            refusals[path] = refusal
    if stack[0].kind in {*_SHARED_KINDS, ScopeKind.AGENT}:
        for protected, other in classes.find_collisions(paths):
            problem = f"{other} collides on some file systems with {protected}"
            refusals.setdefault(other, ValidationError(problem))
    return PathDrafts(drafts, refusals)


def _own_scopes(agents: Sequence[Record]) -> Mapping[Scope, str]:
    """Scopes of agents that are no shared layers, with the slug of an agent."""
    return {
        scope: agent_from_record(agent).slug
        for agent in agents
        for scope in build_stack(agent)
        if scope.kind not in _SHARED_KINDS
    }


async def iter_layer_clashes(
    ports: Ports, layer: Scope, path: Path, classes: FileClassRules, actor: Actor | None = None
) -> AsyncIterator[LayerClash]:
    """Iterate over what does not allow a path to be a file of a shared layer.

    With an actor, omits agents that the caller may not open.
    """
    scopes = await load_related_scopes(ports, (layer,))
    for scope, other in await _find_clashing_paths(ports, scopes, path, classes):
        yield LayerClash(scope.kind.value, other)
    async for agents in iter_followers(ports, layer):
        names = _own_scopes(
            [agent for agent in agents if actor is None or has_full_access(actor, agent)]
        )
        for scope, other in await _find_clashing_paths(ports, tuple(names), path, classes):
            yield LayerClash(f"agent {names[scope]}", other)


async def is_occupied(ports: Ports, layer: Scope, path: Path, classes: FileClassRules) -> bool:
    """Whether anything does not allow a path to be a new file of a shared layer."""
    try:
        classes.check_path(path)
        await draft_path_check(ports, (layer,), path, classes)
    except (ValidationError, Conflict):
        return True
    scopes = await load_related_scopes(ports, (layer,))
    return bool(await _find_occupants(ports, scopes, path))


async def _find_clashing_paths(
    ports: Ports, scopes: Stack, path: Path, classes: FileClassRules
) -> Sequence[tuple[Scope, Path]]:
    """Occupants of a path, and the paths of each scope that collide with it in letter case."""
    clashes = [*await _find_occupants(ports, scopes, path)]
    if classes.is_protective_of(path):
        clashes += [
            (tree.scope, other)
            for tree in await ports.trees.read(scopes)
            for other in sorted(tree.heads)
            if classes.collide(path, other)
        ]
    return clashes


async def _find_occupants(ports: Ports, scopes: Stack, path: Path) -> Sequence[tuple[Scope, Path]]:
    """Parents of a path that are files in a scope, and the first path below it in each."""
    occupants = []
    if path.parents:
        for tree in await ports.trees.read(scopes, path.parents):
            occupants += [(tree.scope, parent) for parent in path.parents if tree.entry(parent)]
    for tree in await ports.trees.read(scopes, prefix=f"{path}/"):
        occupants += [(tree.scope, below) for below in sorted(tree.heads)[:1]]
    return occupants


async def check_new_stacks(
    ports: Ports, agents: Sequence[Record], classes: FileClassRules
) -> tuple[Sequence[ExpectPathFree], ...]:
    """Check the own files of each agent against another template, with one read of trees.

    Returns the checks that each commit must repeat: of its own files in the lower layers, and the
    reverse. Raises Conflict.
    """
    stacks = [build_stack(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True)) if scopes else {}
    return tuple(_check_new_stack([trees[scope] for scope in stack], classes) for stack in stacks)


def _check_new_stack(trees: Layers, classes: FileClassRules) -> Sequence[ExpectPathFree]:
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
        ExpectPathFree(path, (trees[0].scope,))
        if tree.scope.kind in _SHARED_KINDS
        else ExpectPathFree(
            path,
            shared,
            None,
            partial(classes.collide, path) if classes.may_collide(path) else None,
        )
        for tree in trees
        for path in tree.heads
        if tree.entry(path)
    ]


async def check_path_clashes(ports: Ports, findings: FindingList) -> None:
    """Report clashes in stacks.

    That is, a file in one layer and a directory in another, and paths that collide with a pinned
    or managed one in letter case.
    """
    async for tenant in iter_records(ports, "", RecordType.TENANT):
        names = await _load_template_names(ports, tenant.id)
        classes = (await load_rules(ports, tenant.id)).policy.classes
        problems: dict[str, str] = {}
        defaults, *templates = await ports.trees.read(tuple(names))
        for tree in (defaults, *templates):
            shared = [tree] if tree is defaults else [tree, defaults]
            problems |= dict.fromkeys(_describe_clashes(shared, classes), names[tree.scope])
        async for agent, layers in iter_agent_layers(ports, tenant.id):
            subject = f"agent {agent_from_record(agent).slug}"
            for text in _describe_clashes(layers, classes):
                problems.setdefault(text, subject)
        slug = tenant_from_record(tenant).slug
        for text, subject in problems.items():
            findings.warn(f"{subject} of {slug}", text)


def _describe_clashes(layers: Layers, classes: FileClassRules) -> Iterator[str]:
    for clash in find_clashes(layers):
        yield (
            f"{clash.file} is a file of its {clash.file_scope.kind} and a directory of its"
            f" {clash.below_scope.kind}"
        )
    paths = {path for tree in layers for path in tree.heads if tree.entry(path)}
    collisions = classes.find_collisions(paths)
    for protected, other in collisions:
        yield f"{other} collides on some file systems with {protected}"
    for path in sorted(paths.difference(other for _, other in collisions)):
        if protecting := classes.find_lookalike(path):
            yield f"{path} collides on some file systems with a path that is {protecting}"


async def _load_template_names(ports: Ports, tenant: str) -> dict[Scope, str]:
    """Names of the shared layers, the defaults first."""
    names = {Scope(tenant, ScopeKind.DEFAULTS, ""): "defaults"}
    async for record in iter_records(ports, tenant, RecordType.TEMPLATE):
        scope = Scope(tenant, ScopeKind.TEMPLATE, record.id)
        names[scope] = f"template {template_from_record(record).slug}"
    return names
