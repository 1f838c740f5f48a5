"""The files that memory lives in, read and written together: MEMORY.md, DREAMS.md and the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import NO_DRAFTS, FileDrafts
from carrel.core.access import Actor, may_write
from carrel.core.errors import Busy, Conflict, WorkspaceTooLarge
from carrel.core.identifiers import Digest, Path, Scope, TimestampMs, digest
from carrel.core.memory.dream_log import DREAMS, INDEX, INDEX_TYPE, index_of, same_index
from carrel.core.memory.promoted_lines import MEMORY, PromotedLine
from carrel.core.overlay import agent_files
from carrel.core.overlay.agent_files import NewContent, RenderContext
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.edit import UNCONDITIONAL
from carrel.core.store.record import RecordChange
from carrel.core.store.tree import (
    MARKDOWN,
    Applied,
    Commit,
    IdempotencyKey,
    QuotaExceeded,
    expect_unchanged,
)
from carrel.ports import Ports

_PATHS: Final = (MEMORY, DREAMS, INDEX)
_TYPES: Final = {INDEX: INDEX_TYPE}


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """What an agent's three files say now, placeholders as they stand; None for what is not."""

    layers: Layers
    eye: RenderContext
    texts: Mapping[Path, str | None]

    @property
    def own(self) -> Scope:
        return self.layers[0].scope

    @property
    def memory(self) -> str | None:
        return self.texts[MEMORY]

    @property
    def seen(self) -> Digest | None:
        """What tells this MEMORY.md from any other."""
        return None if self.memory is None else digest(self.memory.encode())


def may_remember(actor: Actor, own: Scope) -> None:
    """Whether a caller may change what an agent remembers. Raises Forbidden.

    Its own key may, whatever files its policy lets it write, and of people owners and admins.
    """
    may_write(actor, own, MEMORY, (MEMORY.text,))


async def read(ports: Ports, tenant: str, agent: str, rules: TenantRules) -> MemoryFiles:
    """In one reading of trees and one of bytes. Raises Missing, or Taken for what is no text."""
    agent_layers: AgentLayers = await load_agent_layers(ports, tenant, agent)
    layers = await ports.trees.read(agent_layers.stack, _PATHS)
    render_context = replace(agent_layers.eye, classes=rules.policy.classes)
    shown = {path: render_context.resolve(path, layers) for path in _PATHS}
    bytes_of = await ports.blobs.get([file.blob for file in shown.values() if file])
    texts: dict[Path, str | None] = {}
    for path, file in shown.items():
        try:
            texts[path] = bytes_of[file.blob.digest].decode() if file else None
        except UnicodeDecodeError:
            raise Conflict(f"{path} is not text") from None
    return MemoryFiles(layers, render_context, texts)


def with_index(
    files: MemoryFiles, memory: str, stood: Sequence[PromotedLine], at: TimestampMs
) -> Mapping[Path, str]:
    """The index of a MEMORY.md, if it says anything new."""
    index = index_of(memory, stood, at)
    return {} if same_index(files.texts[INDEX], index) else {INDEX: index}


async def changed_files(
    ports: Ports, rules: TenantRules, files: MemoryFiles, wanted: Mapping[Path, str]
) -> FileDrafts:
    """Those that differ from what is there, redacted, each an entry of the agent's own.

    Raises Forbidden where a file's class says no, and TooLarge.
    """
    redacted = {path: rules.redactor.redact(text.encode()).content for path, text in wanted.items()}
    now = {path: text.encode() for path, text in files.texts.items() if text is not None}
    changed = {path: text for path, text in redacted.items() if now.get(path) != text}
    for content in changed.values():
        rules.policy.limits_of(files.own).admit(len(content))
    blobs = await ports.blobs.put(list(changed.values()))
    seen = tuple(expect_unchanged(tree, path) for tree in files.layers for path in _PATHS)
    made = NO_DRAFTS + FileDrafts((), seen)
    for path, blob in zip(changed, blobs, strict=True):
        type = _TYPES.get(path, MARKDOWN)
        decided = agent_files.put(
            files.layers, path, NewContent(blob, type), files.eye, UNCONDITIONAL
        )
        made += FileDrafts((decided.write,) if decided else ())
    return made


async def commit_memory_files(  # noqa: PLR0913 - a commit and all that goes with it, by name
    ports: Ports,
    rules: TenantRules,
    author: str,
    reason: str,
    files: FileDrafts,
    changes: Sequence[RecordChange],
    *,
    at: TimestampMs,
    receipt: IdempotencyKey | None = None,
) -> None:
    """All of it or nothing. Raises Busy where anything it was decided from has changed."""
    scopes = {write.scope for write in files.writes}
    commit = Commit(
        files.writes,
        author,
        reason,
        at,
        expects=files.expects,
        collection_revisions=rules.shelves,
        changes=tuple(changes),
        quotas=tuple(rules.policy.limits_of(scope).quota(scope) for scope in scopes),
        max_versions=rules.policy.limits.max_versions,
        idempotency_key=receipt,
    )
    [outcome] = await ports.trees.commit([commit])
    if isinstance(outcome, QuotaExceeded):
        limit = outcome.quota.files
        raise WorkspaceTooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    if not isinstance(outcome, Applied):
        raise Busy("others were changing the same memories at the same time")
