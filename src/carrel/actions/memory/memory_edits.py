"""Edits of a memory, which keeps its id, its recalls and its place in MEMORY.md."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.memory import memories, memory_files
from carrel.actions.memory.memory_files import load_writable_scope
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, Permission
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Conflict
from carrel.core.memory.dream_records import promotion_record_change
from carrel.core.memory.keywords import extract_tags
from carrel.core.memory.memory import (
    Memory,
    content_unique_key,
    flatten_line,
    memory_change,
    memory_from_record,
    normalize_tags,
    parse_kind,
)
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordType
from carrel.ports import Ports


class MemoryEdit(Struct, frozen=True):
    """Fields to change."""

    content: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    kind: str | UnsetType | None = UNSET


@retry_on_conflict()
async def edit(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    changes: MemoryEdit,
    idempotency_key: IdempotencyKey | None = None,
) -> Memory:
    """Change a memory; its line in MEMORY.md follows, and proposals that quote it end.

    Raises NotFound, Forbidden, ValidationError, Conflict if the agent has the same text already,
    WorkspaceTooLarge, Busy.
    """
    actor.require(Permission.WORKSPACE_READ)
    scope = await load_writable_scope(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    rules, at = await load_rules(ports, scope.tenant), ports.clock.now()
    record = await memories.get_memory_record(ports, scope.tenant, scope.name, id)
    memory = memory_from_record(record)
    edited = _apply(memory, changes, rules)
    if edited == memory:
        return memory
    text_key = content_unique_key(scope.tenant, edited.agent, edited.mode, edited.content)
    [existing] = await ports.records.get_by_unique_key([text_key])
    if existing is not None and existing.id != id:
        raise Conflict("the agent has this memory already", memoryId=existing.id)
    record_changes = [memory_change(scope.tenant, edited, record.revision)]
    drafts = FileDrafts()
    if edited.content != memory.content:
        record_changes += await memories.supersede_proposals(ports, scope.tenant, scope.name, id)
        [promotion] = await ports.records.get(scope.tenant, RecordType.PROMOTION, [id])
        moved = memories.moved_promotion(edited, promotion, rules) if promotion else None
        if promotion and moved:
            drafts = await memories.draft_without_memory(ports, rules, promotion, moved, at)
            record_changes.append(promotion_record_change(scope.tenant, moved, promotion.revision))
    await memory_files.commit_memory_files(
        ports,
        rules,
        actor,
        "edit a memory",
        drafts,
        record_changes,
        at=at,
        idempotency_key=idempotency_key,
        audit_subjects=(f"{RecordType.MEMORY}/{id}", f"{RecordType.AGENT}/{scope.name}"),
    )
    return edited


def _apply(memory: Memory, changes: MemoryEdit, rules: TenantRules) -> Memory:
    """Return the memory with the given fields, redacted."""
    fields: dict[str, Any] = {}
    if changes.content is not UNSET:
        content = rules.redact_text(flatten_line(changes.content))
        fields |= {"content": content, "concepts": extract_tags(content)}
    if changes.tags is not UNSET:
        fields["tags"] = tuple(map(rules.redact_text, normalize_tags(changes.tags)))
    if changes.kind is not UNSET:
        fields["kind"] = parse_kind(changes.kind)
    return replace(memory, **fields)
