"""Managed files in the catalog: as their agents are shown them, which may be newer than stored.

See docs/decisions/0018-a-managed-file-follows-as-it-is-read.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.actions.blob_contents import contents_of
from carrel.actions.files.files import served
from carrel.actions.overlay.agent_layers import lineages_of
from carrel.actions.policy.tenant_rules import rules_of
from carrel.core.catalog.layout import Shown
from carrel.core.identifiers import Kind, Path, Scope
from carrel.core.overlay.agent_files import Eye, Source
from carrel.core.overlay.file_classes import Classes, FileClass
from carrel.core.overlay.layers import upstream_of
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import Corrupt, World

Passed = dict[str, list[Path]]
"""By the ids of agents, the files of their own in whose place something newer is shown."""


async def shown_instead(
    world: World, classes: Classes, agents: Sequence[Record], trees: Mapping[Scope, Tree]
) -> Mapping[str, Mapping[Path, Shown]]:
    """What stands for each such file, by agent; in as many questions for many as for one."""
    own = {agent.id: trees[Scope(agent.tenant, Kind.AGENT, agent.id)] for agent in agents}
    managed = {
        id: [p for p in t.heads if classes.of(p) is FileClass.MANAGED] for id, t in own.items()
    }
    paths = {path for some in managed.values() for path in some}
    if not paths:
        return {}
    above = tuple(dict.fromkeys(scope for agent in agents for scope in upstream_of(agent)))
    beneath = dict(zip(above, await world.trees.read(above, paths), strict=True))
    layers = {
        agent.id: (own[agent.id], *(beneath[scope] for scope in upstream_of(agent)))
        for agent in agents
    }
    passed: Passed = {}
    for id, some in managed.items():
        for path in some:
            file = Eye(classes).shown(path, layers[id])
            if file is not None and file.origin is not Source.OVERRIDE:
                passed.setdefault(id, []).append(path)
    return await _filled_in(world, classes, passed, layers) if passed else {}


async def _filled_in(
    world: World, classes: Classes, passed: Passed, layers: Mapping[str, tuple[Tree, ...]]
) -> Mapping[str, Mapping[Path, Shown]]:
    """Redacted like all that is written down, which what is read need not be."""
    tenant = next(iter(layers.values()))[0].scope.tenant
    lineages = await lineages_of(world, tenant, list(passed))
    redactor = (await rules_of(world, tenant)).redactor
    files = {
        (id, path): file
        for id, paths in passed.items()
        for path in paths
        if id in lineages
        and (file := Eye(classes, lineages[id].eye.variables).shown(path, layers[id]))
    }
    blobs = await contents_of(world, [file.blob for file in files.values()])
    found: dict[str, dict[Path, Shown]] = {}
    for (id, path), file in files.items():
        stored = blobs[file.blob.digest]
        if isinstance(stored, Corrupt):
            continue
        text = redactor.redact(served(file, stored)).content
        at = max(file.head.at, layers[id][0].heads[path].at)
        found.setdefault(id, {})[path] = Shown(text, at)
    return found
