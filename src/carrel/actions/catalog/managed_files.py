"""Managed files in the catalog: as their agents are shown them, which may be newer than stored.

See docs/decisions/0018-managed-files-are-rendered-on-read.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.actions.blob_contents import contents_of
from carrel.actions.files.files import render_content
from carrel.actions.overlay.agent_layers import load_many_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.catalog.layout import ServedFile
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.agent_files import FileSource, RenderContext
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.layers import upstream_of
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import CorruptContent, Ports

Passed = dict[str, list[Path]]
"""By the ids of agents, the files of their own in whose place something newer is shown."""


async def shown_instead(
    ports: Ports, classes: FileClassRules, agents: Sequence[Record], trees: Mapping[Scope, Tree]
) -> Mapping[str, Mapping[Path, ServedFile]]:
    """What stands for each such file, by agent; in as many questions for many as for one."""
    own = {agent.id: trees[Scope(agent.tenant, ScopeKind.AGENT, agent.id)] for agent in agents}
    managed = {
        id: [p for p in t.heads if classes.class_of(p) is FileClass.MANAGED]
        for id, t in own.items()
    }
    paths = {path for some in managed.values() for path in some}
    if not paths:
        return {}
    above = tuple(dict.fromkeys(scope for agent in agents for scope in upstream_of(agent)))
    beneath = dict(zip(above, await ports.trees.read(above, paths), strict=True))
    layers = {
        agent.id: (own[agent.id], *(beneath[scope] for scope in upstream_of(agent)))
        for agent in agents
    }
    passed: Passed = {}
    for id, some in managed.items():
        for path in some:
            file = RenderContext(classes).resolve(path, layers[id])
            if file is not None and file.origin is not FileSource.OVERRIDE:
                passed.setdefault(id, []).append(path)
    return await _filled_in(ports, classes, passed, layers) if passed else {}


async def _filled_in(
    ports: Ports, classes: FileClassRules, passed: Passed, layers: Mapping[str, tuple[Tree, ...]]
) -> Mapping[str, Mapping[Path, ServedFile]]:
    """Redacted like all that is written down, which what is read need not be."""
    tenant = next(iter(layers.values()))[0].scope.tenant
    lineages = await load_many_agent_layers(ports, tenant, list(passed))
    redactor = (await load_rules(ports, tenant)).redactor
    files = {
        (id, path): file
        for id, paths in passed.items()
        for path in paths
        if id in lineages
        and (file := RenderContext(classes, lineages[id].eye.variables).resolve(path, layers[id]))
    }
    blobs = await contents_of(ports, [file.blob for file in files.values()])
    found: dict[str, dict[Path, ServedFile]] = {}
    for (id, path), file in files.items():
        stored = blobs[file.blob.digest]
        if isinstance(stored, CorruptContent):
            continue
        text = redactor.redact(render_content(file, stored)).content
        at = max(file.head.at, layers[id][0].heads[path].at)
        found.setdefault(id, {})[path] = ServedFile(text, at)
    return found
