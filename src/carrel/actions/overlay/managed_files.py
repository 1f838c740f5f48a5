"""Drafts of USER.md and IDENTITY.md, for the commit of the change that they reflect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import FileDrafts
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.identity_name import IDENTITY_PATH, rename_identity, uses_agent_name
from carrel.core.agents.layers import build_stack
from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.agent_resolution import (
    AgentFileResolver,
    is_own_file,
    upstream_layers,
)
from carrel.core.overlay.agent_writes import agent_write, rewritten_entry
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Expect, Write, expect_unchanged
from carrel.core.store.entry import Entry
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import Ports

USER: Final = Path("USER.md")


class AgentWithVariables(Struct, frozen=True):
    """Agent after the change, with its placeholder values."""

    agent: Record
    variables: PlaceholderValues


async def draft_user_files(
    ports: Ports, rules: TenantRules, agents: Sequence[AgentWithVariables]
) -> FileDrafts:
    """Draft each agent's USER.md from its template or the defaults.

    The agent's current USER.md is never a source. Takes one read of trees and one of
    blobs. Raises WorkspaceTooLarge if a file becomes too large.
    """
    stacks = [build_stack(item.agent) for item in agents]
    trees = await _load_trees(ports, {scope for stack in stacks for scope in stack}, USER)
    sources = [
        upstream_blob(USER, upstream_layers([trees[scope] for scope in stack])) for stack in stacks
    ]
    texts = await ports.blobs.get({blob for blob in sources if blob})
    rendered = [
        (
            item.agent,
            source,
            rules.redactor.redact(render_bytes(texts[source.digest], item.variables)),
        )
        for item, stack, source in zip(agents, stacks, sources, strict=True)
        if source is not None
    ]
    blobs = await ports.blobs.put([redacted.content for _, _, redacted in rendered])
    writes = [
        _checked_write(
            rules, agent, [trees[scope] for scope in build_stack(agent)], USER, Entry(blob, source)
        )
        for (agent, source, _), blob in zip(rendered, blobs, strict=True)
        if _differs(trees[build_stack(agent)[0]].entry(USER), blob, source)
    ]
    return FileDrafts(tuple(writes), _expect_unchanged(trees.values(), USER))


async def draft_identity_file(
    ports: Ports, rules: TenantRules, agent: Record, name: str
) -> FileDrafts:
    """Draft IDENTITY.md with a new name; empty if the file uses the name placeholder.

    Raises WorkspaceTooLarge if the file becomes too large.
    """
    stack = build_stack(agent)
    trees = await _load_trees(ports, stack, IDENTITY_PATH)
    layers = [trees[scope] for scope in stack]
    unchanged = _expect_unchanged(layers, IDENTITY_PATH)
    file = AgentFileResolver(rules.policy.classes).resolve(IDENTITY_PATH, layers)
    if file is None:
        return FileDrafts((), unchanged)
    text = (await ports.blobs.get([file.blob]))[file.blob.digest]
    if not is_own_file(file) and uses_agent_name(text):
        return FileDrafts((), unchanged)
    [blob] = await ports.blobs.put([rules.redactor.redact(rename_identity(text, name)).content])
    if blob == file.blob:
        return FileDrafts((), unchanged)
    entry = rewritten_entry(file, blob, layers)
    return FileDrafts((_checked_write(rules, agent, layers, IDENTITY_PATH, entry),), unchanged)


def _checked_write(
    rules: TenantRules, agent: Record, layers: Layers, path: Path, entry: Entry | None
) -> Write:
    try:
        rules.policy.limits_of(layers[0].scope).check_file_size(entry.blob.size if entry else 0)
    except WorkspaceTooLarge as problem:
        subject = f"{path} of agent {agent_from_record(agent).slug}"
        raise WorkspaceTooLarge(
            f"{subject} would be too large: {problem}", **problem.details
        ) from None
    return agent_write(layers, path, entry, rules.policy.classes.class_of(path))


async def _load_trees(ports: Ports, scopes: Iterable[Scope], path: Path) -> Mapping[Scope, Tree]:
    unique_scopes = tuple(dict.fromkeys(scopes))
    return dict(zip(unique_scopes, await ports.trees.read(unique_scopes, (path,)), strict=True))


def _expect_unchanged(trees: Iterable[Tree], path: Path) -> tuple[Expect, ...]:
    return tuple(expect_unchanged(tree, path) for tree in trees)


def _differs(entry: Entry | None, blob: Blob, source: Blob) -> bool:
    return entry is None or (entry.blob, entry.base) != (blob, source)
