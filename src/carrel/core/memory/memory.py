"""Memories: what an agent was told to remember, one line each, by its words to be found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.keywords import concepts
from carrel.core.overlay.placeholders import cleaned
from carrel.core.runs import Audience
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

LONGEST: Final = 2000
"""Characters of a memory."""
LONGEST_QUERY: Final = 500
"""Characters of a question; of longer ones the rest is not looked at."""
MOST_TAGS: Final = 20
LONGEST_TAG: Final = 64
KINDS: Final = ("user", "feedback", "project", "reference")


class Memory(Struct, frozen=True):
    id: str
    agent: str
    content: str
    mode: Audience
    """Who was listening when it was told."""
    created: TimestampMs
    tags: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    kind: str | None = None
    promoted: TimestampMs | None = None
    """Since when it stands in MEMORY.md, if it ever did."""


def of_agent(id: str) -> str:
    """The link under which what belongs to an agent is listed."""
    return f"agent:{id}"


def flatten_line(text: str) -> str:
    """A text as it is remembered: one line of what can be seen. Raises Malformed."""
    if len(text) > LONGEST:
        raise ValidationError(f"a memory has at most {LONGEST} characters", maxCharacters=LONGEST)
    line = " ".join(cleaned(text).split())
    if not line:
        raise ValidationError("there is nothing to remember")
    return line


def tidy_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags as they are kept: each once, on one line. Raises Malformed."""
    kept = tuple(dict.fromkeys(" ".join(cleaned(tag).split()) for tag in tags))
    if len(kept) > MOST_TAGS or any(not 1 <= len(tag) <= LONGEST_TAG for tag in kept):
        raise ValidationError(f"at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters")
    return kept


def normalize_question(query: str) -> str:
    """A question as it is noted with what it brought up."""
    return " ".join(cleaned(query[:LONGEST_QUERY]).split())


def memory_of(record: Record) -> Memory:
    body = record.body
    return Memory(
        record.id,
        body["agentId"],
        body["content"],
        Audience(body["mode"]),
        record.created_at,
        tuple(body.get("tags", ())),
        tuple(body.get("conceptTags", ())),
        body.get("kind"),
        body.get("promotedAt"),
    )


def body_of(memory: Memory) -> dict[str, Any]:
    said = {
        "agentId": memory.agent,
        "content": memory.content,
        "mode": memory.mode.value,
        "tags": list(memory.tags),
        "conceptTags": list(memory.concepts),
        "kind": memory.kind,
        "promotedAt": memory.promoted,
    }
    return {name: value for name, value in said.items() if value not in (None, [])}


def memory_change(tenant: str, memory: Memory, expected: int) -> RecordChange:
    """A memory as it should become. An agent has no text twice in the same scope."""
    return RecordChange(
        tenant,
        RecordType.MEMORY,
        memory.id,
        body_of(memory),
        expected,
        unique_keys=(text_handle(tenant, memory.agent, memory.mode, memory.content),),
        index_keys=(of_agent(memory.agent),),
    )


def text_handle(tenant: str, agent: str, mode: Audience, content: str) -> str:
    said = sha256(content.encode()).hexdigest()
    return unique_key(tenant, RecordType.MEMORY, "text", f"{agent}/{mode}/{said}")


def new_memory(
    id: str, agent: str, content: str, mode: Audience, at: TimestampMs, **more: Any
) -> Memory:
    """A new memory, with what it is about."""
    return Memory(id, agent, content, mode, at, concepts=concepts(content), **more)


def kind_of(text: str | None) -> str | None:
    if text is not None and text not in KINDS:
        raise ValidationError(f"a memory's kind is one of {', '.join(KINDS)}")
    return text


def by_id(records: Sequence[Record | None]) -> Mapping[str, Memory]:
    """Those that are there."""
    return {record.id: memory_of(record) for record in records if record}
