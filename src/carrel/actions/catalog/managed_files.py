"""Managed files in the catalog as served to agents, possibly newer than stored.

See docs/decisions/0018-managed-files-are-rendered-on-read.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.actions.blob_contents import load_contents
from carrel.actions.files.files import render_content
from carrel.actions.overlay.agent_layers import load_many_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.agents.layers import upstream_stack
from carrel.core.catalog.layout import ServedFile
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import AgentFileResolver, FileSource
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import CorruptContent, Ports

SupersededPaths = dict[str, list[Path]]
"""Paths of stored managed files that a newer version supersedes, by agent id."""


async def load_served_files(
    ports: Ports, classes: FileClassRules, agents: Sequence[Record], trees: Mapping[Scope, Tree]
) -> Mapping[str, Mapping[Path, ServedFile]]:
    """Load the served version of each superseded file, by agent id and path.

    The number of queries does not depend on the number of agents.
    """
    agent_trees = {
        agent.id: trees[Scope(agent.tenant, ScopeKind.AGENT, agent.id)] for agent in agents
    }
    managed = {
        id: [p for p in t.heads if classes.class_of(p) is FileClass.MANAGED]
        for id, t in agent_trees.items()
    }
    paths = {path for managed_paths in managed.values() for path in managed_paths}
    if not paths:
        return {}
    upstream_scopes = tuple(
        dict.fromkeys(scope for agent in agents for scope in upstream_stack(agent))
    )
    upstream_trees = dict(
        zip(upstream_scopes, await ports.trees.read(upstream_scopes, paths), strict=True)
    )
    layers = {
        agent.id: (
            agent_trees[agent.id],
            *(upstream_trees[scope] for scope in upstream_stack(agent)),
        )
        for agent in agents
    }
    superseded: SupersededPaths = {}
    for id, managed_paths in managed.items():
        for path in managed_paths:
            file = AgentFileResolver(classes).resolve(path, layers[id])
            if file is not None and file.source_label is not FileSource.OVERRIDE:
                superseded.setdefault(id, []).append(path)
    return await _render_served_files(ports, classes, superseded, layers) if superseded else {}


async def _render_served_files(
    ports: Ports,
    classes: FileClassRules,
    superseded: SupersededPaths,
    layers: Mapping[str, tuple[Tree, ...]],
) -> Mapping[str, Mapping[Path, ServedFile]]:
    """Render and redact the served files, since exported content is always redacted."""
    tenant = next(iter(layers.values()))[0].scope.tenant
    agent_layers = await load_many_agent_layers(ports, tenant, list(superseded))
    redactor = (await load_rules(ports, tenant)).redactor
    files = {
        (id, path): file
        for id, paths in superseded.items()
        for path in paths
        if id in agent_layers
        and (
            file := AgentFileResolver(classes, agent_layers[id].resolver.variables).resolve(
                path, layers[id]
            )
        )
    }
    blobs = await load_contents(ports, [file.blob for file in files.values()])
    served: dict[str, dict[Path, ServedFile]] = {}
    for (id, path), file in files.items():
        stored = blobs[file.blob.digest]
        if isinstance(stored, CorruptContent):
            continue
        text = redactor.redact(render_content(file, stored)).content
        updated_at = max(file.head.at, layers[id][0].heads[path].at)
        served.setdefault(id, {})[path] = ServedFile(text, updated_at)
    return served
