"""Memory files of an agent: MEMORY.md, DREAMS.md and the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.overlay.path_clashes import draft_path_check
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import NO_DRAFTS, FileDrafts
from carrel.core.access import Actor, author_and_key, require_write_access
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Busy, Conflict, WorkspaceTooLarge
from carrel.core.identifiers import Digest, Path, Scope, TimestampMs, digest
from carrel.core.memory.dream_log import (
    DREAMS_PATH,
    INDEX_PATH,
    INDEX_TYPE,
    build_index,
    same_index,
)
from carrel.core.memory.dream_records import dream_events
from carrel.core.memory.promoted_lines import MEMORY_PATH, PromotedLine
from carrel.core.overlay import agent_writes
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.agent_writes import NewContent
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.planned_writes import path_occupied_error
from carrel.core.overlay.write_condition import UNCONDITIONAL
from carrel.core.store.commit import Applied, Commit, PathOccupied, QuotaExceeded, expect_unchanged
from carrel.core.store.entry import MARKDOWN
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordChange
from carrel.ports import Ports

_PATHS: Final = (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)
_TYPES: Final = {INDEX_PATH: INDEX_TYPE}


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """Current unrendered texts of an agent's memory files; None for a missing file."""

    layers: Layers
    resolver: AgentFileResolver
    texts: Mapping[Path, str | None]

    @property
    def scope(self) -> Scope:
        return self.layers[0].scope

    @property
    def memory(self) -> str | None:
        return self.texts[MEMORY_PATH]

    @property
    def memory_digest(self) -> Digest | None:
        """Digest of MEMORY.md, None if it is missing."""
        return None if self.memory is None else digest(self.memory.encode())


async def load_writable_scope(ports: Ports, actor: Actor, name: str) -> Scope:
    """Return the scope of an agent whose memory the caller may change, by id or slug.

    Allowed are the agent's own key, whatever its writable files, its owner and its paired human,
    services, and owners and admins of the tenant. Raises NotFound, Forbidden.
    """
    [scope, *_] = await stacks.agent_stack(ports, actor, name)
    if actor.person is not None and not actor.is_admin:
        agent = (await load_agent_layers(ports, scope.tenant, scope.name)).agent
        if agent_from_record(agent).is_of_person(actor.person):
            return scope
    require_write_access(actor, scope, MEMORY_PATH, (MEMORY_PATH.text,))
    return scope


async def load_memory_files(
    ports: Ports, tenant: str, agent: str, rules: TenantRules
) -> MemoryFiles:
    """Load the memory files with one read of trees and one of blobs.

    Raises NotFound, and Conflict if a file is not text.
    """
    agent_layers: AgentLayers = await load_agent_layers(ports, tenant, agent)
    layers = await ports.trees.read(agent_layers.stack, _PATHS)
    resolver = replace(agent_layers.resolver, classes=rules.policy.classes)
    files = {path: resolver.resolve(path, layers) for path in _PATHS}
    contents = await ports.blobs.get([file.blob for file in files.values() if file])
    texts: dict[Path, str | None] = {}
    for path, file in files.items():
        try:
            texts[path] = contents[file.blob.digest].decode() if file else None
        except UnicodeDecodeError:
            raise Conflict(f"{path} is not text") from None
    return MemoryFiles(layers, resolver, texts)


def changed_index(
    files: MemoryFiles, memory: str, lines: Sequence[PromotedLine], at: TimestampMs
) -> Mapping[Path, str]:
    """Return the new index of MEMORY.md if it differs from the stored one."""
    index = build_index(memory, lines, at)
    return {} if same_index(files.texts[INDEX_PATH], index) else {INDEX_PATH: index}


async def draft_changed_files(
    ports: Ports, rules: TenantRules, files: MemoryFiles, new_texts: Mapping[Path, str]
) -> FileDrafts:
    """Draft the files that differ from the current ones, redacted, as agent files.

    Raises Forbidden if a file's class does not allow it, and WorkspaceTooLarge.
    """
    redacted = {
        path: rules.redactor.redact(text.encode()).content for path, text in new_texts.items()
    }
    current = {path: text.encode() for path, text in files.texts.items() if text is not None}
    changed = {path: text for path, text in redacted.items() if current.get(path) != text}
    for content in changed.values():
        rules.policy.limits_of(files.scope).check_file_size(len(content))
    blobs = await ports.blobs.put(list(changed.values()))
    unchanged = tuple(expect_unchanged(tree, path) for tree in files.layers for path in _PATHS)
    drafts = NO_DRAFTS + FileDrafts((), unchanged)
    for path, blob in zip(changed, blobs, strict=True):
        type = _TYPES.get(path, MARKDOWN)
        planned = agent_writes.plan_agent_put(
            files.layers, path, NewContent(blob, type), files.resolver, UNCONDITIONAL
        )
        if planned is None:
            continue
        path_checks = planned.path_checks
        if path_checks:
            stack = tuple(tree.scope for tree in files.layers)
            check = await draft_path_check(ports, stack, path, files.resolver.classes)
            path_checks = check.path_checks or path_checks
        drafts += FileDrafts((planned.write,), path_checks=path_checks)
    return drafts


async def commit_memory_files(  # noqa: PLR0913 - keyword options of one commit
    ports: Ports,
    rules: TenantRules,
    author: Actor | str,
    reason: str,
    files: FileDrafts,
    changes: Sequence[RecordChange],
    *,
    at: TimestampMs,
    idempotency_key: IdempotencyKey | None = None,
    audit_subjects: Sequence[str] = (),
) -> None:
    """Commit files and record changes. Raises Busy if anything they rest on changed, Conflict."""
    scopes = {write.scope for write in files.writes}
    name, key = author_and_key(author)
    commit = Commit(
        files.writes,
        name,
        reason,
        at,
        expects=files.expects,
        collection_revisions=rules.collection_revisions,
        changes=tuple(changes),
        events=dream_events(changes),
        path_checks=files.path_checks,
        quotas=tuple(rules.policy.limits_of(scope).quota(scope) for scope in scopes),
        max_versions=rules.policy.limits.max_versions,
        idempotency_key=idempotency_key,
        audit_subjects=tuple(audit_subjects),
        key=key,
    )
    [outcome] = await ports.trees.commit([commit])
    if isinstance(outcome, QuotaExceeded):
        limit = outcome.quota.max_files
        raise WorkspaceTooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    if isinstance(outcome, PathOccupied):
        raise path_occupied_error(outcome)
    if not isinstance(outcome, Applied):
        raise Busy.with_conflicts()
