"""Files that Carrel writes itself, in the very commit of the change that causes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import FileDrafts
from carrel.core.agents.identity_name import IDENTITY, follows_its_agent, renamed
from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.agent_files import held_entry, upstream
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.store.record import Record
from carrel.core.store.tree import Blob, Entry, Expect, Tree, Write, expect_unchanged
from carrel.ports import Ports

USER: Final = Path("USER.md")


class AgentWithVariables(Struct, frozen=True):
    """An agent as it is to become, and the words for it then."""

    agent: Record
    words: PlaceholderValues


async def user_files(
    ports: Ports, rules: TenantRules, kin: Sequence[AgentWithVariables]
) -> FileDrafts:
    """USER.md of each, from its template or the defaults and never from what it has now.

    However many they are, it takes one reading of trees and one of bytes. Raises TooLarge where
    one becomes larger than a file may be.
    """
    stacks = [stack_of(one.agent) for one in kin]
    trees = await _trees(ports, {scope for stack in stacks for scope in stack}, USER)
    sources = [upstream_blob(USER, upstream([trees[scope] for scope in stack])) for stack in stacks]
    texts = await ports.blobs.get({blob for blob in sources if blob})
    wanted = [
        (one.agent, source, rules.redactor.redact(render_bytes(texts[source.digest], one.words)))
        for one, stack, source in zip(kin, stacks, sources, strict=True)
        if source is not None
    ]
    blobs = await ports.blobs.put([redacted.content for _, _, redacted in wanted])
    writes = [
        _write(rules, agent, USER, Entry(blob, source))
        for (agent, source, _), blob in zip(wanted, blobs, strict=True)
        if _differs(trees[stack_of(agent)[0]].entry(USER), blob, source)
    ]
    return FileDrafts(tuple(writes), _seen(trees.values(), USER))


async def identity_file(ports: Ports, rules: TenantRules, agent: Record, name: str) -> FileDrafts:
    """IDENTITY.md with another name; nothing where what is inherited shows it by its token.

    Raises TooLarge where it becomes larger than a file may be.
    """
    stack = stack_of(agent)
    trees = await _trees(ports, stack, IDENTITY)
    layers = [trees[scope] for scope in stack]
    own, beneath = layers[0].entry(IDENTITY), upstream_blob(IDENTITY, upstream(layers))
    if rules.policy.classes.class_of(IDENTITY) is FileClass.PINNED:
        own = held_entry(IDENTITY, layers)
    seen = _seen(layers, IDENTITY)
    source = own.blob if own else beneath
    if source is None:
        return FileDrafts((), seen)
    text = (await ports.blobs.get([source]))[source.digest]
    if own is None and follows_its_agent(text):
        return FileDrafts((), seen)
    [blob] = await ports.blobs.put([rules.redactor.redact(renamed(text, name)).content])
    if blob == source:
        return FileDrafts((), seen)
    base = own.base if own else beneath
    type = own.type if own else _type(layers)
    return FileDrafts((_write(rules, agent, IDENTITY, Entry(blob, base, type)),), seen)


def _write(rules: TenantRules, agent: Record, path: Path, entry: Entry) -> Write:
    own = stack_of(agent)[0]
    try:
        rules.policy.limits_of(own).admit(entry.blob.size)
    except WorkspaceTooLarge as problem:
        whose = f"{path} of the agent {agent.body['slug']}"
        raise WorkspaceTooLarge(
            f"{whose} would be too large: {problem}", **problem.details
        ) from None
    return Write(own, path, entry)


async def _trees(ports: Ports, scopes: Iterable[Scope], path: Path) -> Mapping[Scope, Tree]:
    wanted = tuple(dict.fromkeys(scopes))
    return dict(zip(wanted, await ports.trees.read(wanted, (path,)), strict=True))


def _seen(trees: Iterable[Tree], path: Path) -> tuple[Expect, ...]:
    return tuple(expect_unchanged(tree, path) for tree in trees)


def _differs(entry: Entry | None, blob: Blob, source: Blob) -> bool:
    return entry is None or (entry.blob, entry.base) != (blob, source)


def _type(layers: Layers) -> str:
    return next(entry.type for tree in layers if (entry := tree.entry(IDENTITY)))
