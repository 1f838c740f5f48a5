"""Memories: single-line texts of an agent with tags, found by full-text search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.keywords import extract_tags
from carrel.core.overlay.placeholders import flatten_text
from carrel.core.runs import Audience
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

MAX_CONTENT_LENGTH: Final = 2000
"""Characters of a memory."""
MAX_QUERY_LENGTH: Final = 500
"""Characters of a query; the rest is ignored."""
MAX_TAGS: Final = 20
MAX_TAG_LENGTH: Final = 64
MEMORY_KINDS: Final = ("user", "feedback", "project", "reference")


_STORED_NAMES: Final = {
    "agent": "agentId",
    "concepts": "conceptTags",
    "promoted_at": "promotedAt",
}


class Memory(Struct, frozen=True, rename=_STORED_NAMES, omit_defaults=True):
    id: str
    agent: str
    content: str
    mode: Audience
    """Audience of the session in which it was created."""
    created_at: TimestampMs
    tags: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    kind: str | None = None
    promoted_at: TimestampMs | None = None
    """Time of its promotion into MEMORY.md, if any."""


def agent_index_key(id: str) -> str:
    """Index key of the records that belong to an agent."""
    return f"agent:{id}"


def flatten_line(text: str) -> str:
    """Reduce a text to one visible line. Raises ValidationError."""
    if len(text) > MAX_CONTENT_LENGTH:
        raise ValidationError(
            f"a memory must have at most {MAX_CONTENT_LENGTH} characters",
            maxCharacters=MAX_CONTENT_LENGTH,
        )
    line = flatten_text(text)
    if not line:
        raise ValidationError("a memory must not be empty")
    return line


def normalize_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Single-line tags without duplicates. Raises ValidationError."""
    result = tuple(dict.fromkeys(flatten_text(tag) for tag in tags))
    if len(result) > MAX_TAGS or any(not 1 <= len(tag) <= MAX_TAG_LENGTH for tag in result):
        raise ValidationError(f"at most {MAX_TAGS} tags of 1 to {MAX_TAG_LENGTH} characters")
    return result


def normalize_question(query: str) -> str:
    """Query as stored with a recall."""
    return flatten_text(query[:MAX_QUERY_LENGTH])


def memory_from_record(record: Record) -> Memory:
    fields = {**record.body, "id": record.id, "created_at": record.created_at}
    return msgspec.convert(fields, Memory)


def memory_change(tenant: str, memory: Memory, expected: int) -> RecordChange:
    """Record change for a memory.

    An agent cannot have the same text twice for one audience.
    """
    body = msgspec.to_builtins(memory)
    del body["id"], body["created_at"]
    return RecordChange(
        tenant,
        RecordType.MEMORY,
        memory.id,
        body,
        expected,
        unique_keys=(content_unique_key(tenant, memory.agent, memory.mode, memory.content),),
        index_keys=(agent_index_key(memory.agent),),
    )


def derived_memory_change(record: Record) -> RecordChange:
    """Change of a memory whose content was replaced in the record: its tags and key follow it."""
    memory = memory_from_record(record)
    concepts = extract_tags(memory.content)
    change = memory_change(record.tenant, replace(memory, concepts=concepts), record.revision)
    assert change.body is not None
    return replace(change, body={**record.body, **change.body})


def content_unique_key(tenant: str, agent: str, mode: Audience, content: str) -> str:
    content_digest = sha256(content.encode()).hexdigest()
    return unique_key(tenant, RecordType.MEMORY, "text", f"{agent}/{mode}/{content_digest}")


def new_memory(
    id: str, agent: str, content: str, mode: Audience, at: TimestampMs, **options: Any
) -> Memory:
    """Create a memory with extracted tags."""
    return Memory(id, agent, content, mode, at, concepts=extract_tags(content), **options)


def parse_kind(text: str | None) -> str | None:
    if text is not None and text not in MEMORY_KINDS:
        raise ValidationError(f"a memory's kind must be one of: {', '.join(MEMORY_KINDS)}")
    return text


def index_memories(records: Sequence[Record | None]) -> Mapping[str, Memory]:
    """Memories of the records that exist, by id."""
    return {record.id: memory_from_record(record) for record in records if record}
