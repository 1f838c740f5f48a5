"""Memories: remembering, recalling, forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.memory import memory_files, semantic_recall
from carrel.actions.memory.memory_files import MemoryFiles, may_remember
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    FileDrafts,
    Page,
    commit_changes,
    find,
    iter_records,
    page,
    record_after,
    retry_while_busy,
)
from carrel.core.access import Actor
from carrel.core.errors import Conflict, Forbidden, NotFound, WorkspaceTooLarge
from carrel.core.identifiers import Path, TimestampMs
from carrel.core.memory.dream_log import DREAMS, diary_line, without_line
from carrel.core.memory.dream_records import (
    DreamStatus,
    as_written,
    dream_change,
    dream_of,
    promoted_index,
    promotion_of_record,
    proposed,
    standing_of,
)
from carrel.core.memory.memory import (
    Memory,
    flatten_line,
    kind_of,
    memory_change,
    memory_of,
    new_memory,
    normalize_question,
    of_agent,
    text_handle,
    tidy_tags,
)
from carrel.core.memory.promoted_lines import MEMORY, without
from carrel.core.memory.recall import Recall
from carrel.core.runs import Audience
from carrel.core.search.full_text import query_terms, ranked, searched_text
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

USUAL: Final = 5
"""Memories that a question brings up, if no other number is asked for."""
MOST: Final = 50
MOST_MEMORIES: Final = 50_000
"""Of one agent."""
_LOOKED_AT: Final = 200
"""Memories that are found for a question and compared."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    text: str
    tags: tuple[str, ...] = ()
    kind: str | None = None
    mode: Audience = Audience.MAIN


@dataclass(frozen=True, slots=True)
class RememberResult:
    memory: Memory
    created: bool
    """False for what was remembered before, which then is as it was."""


@dataclass(frozen=True, slots=True)
class MemoryHit:
    memory: Memory
    score: float
    """1 for the first, 1/2 for the second, and so on."""


async def remember(
    ports: Ports, actor: Actor, agent: str, new: NewMemory, receipt: IdempotencyKey | None = None
) -> RememberResult:
    """Keep one flat line, redacted. The same text in the same scope is kept once.

    Raises Missing, Forbidden, Malformed, TooLarge where there are too many, Busy.
    """
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    may_remember(actor, own)
    line, labels, sort = flatten_line(new.text), tidy_tags(new.tags), kind_of(new.kind)
    id = ports.clock.new_id("mem")

    async def attempt() -> RememberResult:
        rules = await load_rules(ports, own.tenant)
        content = rules.redact_text(line)
        name = text_handle(own.tenant, own.name, new.mode, content)
        [known] = await ports.records.get_by_unique_key([name])
        if known is not None:
            return RememberResult(memory_of(known), created=False)
        await _has_room(ports, own.tenant, own.name)
        kept = tuple(rules.redact_text(label) for label in labels)
        memory = new_memory(id, own.name, content, new.mode, 0, tags=kept, kind=sort)
        change = memory_change(own.tenant, memory, 0)
        try:
            at = await commit_changes(
                ports,
                actor.name,
                "remember",
                [change],
                collection_revisions=rules.shelves,
                receipt=receipt,
            )
        except Conflict:
            [known] = await ports.records.get_by_unique_key([name])
            if known is None:
                raise
            return RememberResult(memory_of(known), created=False)
        return RememberResult(memory_of(record_after(change, at)), created=True)

    return await retry_while_busy(attempt)


async def recall(
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    limit: int = USUAL,
    mode: Audience = Audience.MAIN,
) -> tuple[MemoryHit, ...]:
    """What an agent knows of a question, best first; that it came up is noted, for its dreams.

    Raises Missing, and Forbidden in a shared session.
    """
    hits = await search(ports, actor, agent, query, limit=limit, mode=mode)
    if hits:
        rules = await load_rules(ports, actor.tenant)
        noted, at = rules.redact_text(normalize_question(query)), ports.clock.now()
        recalls = [
            Recall(ports.clock.new_id("rcl"), hit.memory.agent, hit.memory.id, noted, hit.score, at)
            for hit in hits
        ]
        await ports.recalls.record(actor.tenant, recalls)
    return hits


async def search(
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    limit: int = USUAL,
    mode: Audience = Audience.MAIN,
) -> tuple[MemoryHit, ...]:
    """The same for somebody who only looks: nothing is noted."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    if mode is not Audience.MAIN:
        raise Forbidden("memories are not available in a shared session")
    words = query_terms(query)
    found = await ports.records.find(
        own.tenant, RecordType.MEMORY, of_agent(own.name), words, limit=_LOOKED_AT
    )
    texts = [(record, searched_text(record.body), record.created_at) for record in found]
    best = ranked(query, texts)
    if words and ports.semantic_index is not None:
        near = await semantic_recall.nearest_memories(
            ports, ports.semantic_index, own, query, limit=MOST
        )
        best = semantic_recall.merge_hits(query, best, near)
    shown = best[: max(0, min(limit, MOST))]
    return tuple(MemoryHit(memory_of(record), 1 / place) for place, record in enumerate(shown, 1))


async def listing(
    ports: Ports, actor: Actor, agent: str, *, cursor: str = "", limit: int = 100
) -> Page[Memory]:
    """All that an agent remembers, as it was told."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    found = await page(
        ports, own.tenant, RecordType.MEMORY, link=of_agent(own.name), cursor=cursor, limit=limit
    )
    return Page(tuple(map(memory_of, found.items)), found.next)


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> Memory:
    """Raises Missing, also for a memory of another agent."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    return memory_of(await _find(ports, own.tenant, own.name, id))


async def forget(
    ports: Ports, actor: Actor, agent: str, id: str, receipt: IdempotencyKey | None = None
) -> None:
    """Forget one memory, and what a dream made of it in MEMORY.md and DREAMS.md, in one commit.

    A line that a person has changed is theirs, and stays. Raises Missing, Forbidden, Busy.
    """
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    may_remember(actor, own)

    async def attempt() -> None:
        rules, at = await load_rules(ports, own.tenant), ports.clock.now()
        was = await _find(ports, own.tenant, own.name, id)
        [promotion] = await ports.records.get(own.tenant, RecordType.PROMOTION, [id])
        gone = [one for one in (was, promotion) if one]
        changes = [RecordChange(one.tenant, one.type, one.id, None, one.revision) for one in gone]
        changes += await _superseded(ports, own.tenant, own.name, id)
        drafts = await _unwritten(ports, rules, promotion, at) if promotion else FileDrafts()
        reason = "forget a memory"
        await memory_files.commit_memory_files(
            ports, rules, actor.name, reason, drafts, changes, at=at, receipt=receipt
        )

    await retry_while_busy(attempt)
    await ports.recalls.drop(own.tenant, own.name, [id])


async def _unwritten(
    ports: Ports, rules: TenantRules, promotion: Record, at: TimestampMs
) -> FileDrafts:
    """The files without what was made of a memory."""
    agent = promotion.body["agentId"]
    files = await memory_files.read(ports, promotion.tenant, agent, rules)
    ledger = iter_records(ports, promotion.tenant, RecordType.PROMOTION, promoted_index(agent))
    stood = [standing_of(as_written(one, rules.redact_text)) async for one in ledger]
    wanted = _without_line(files, as_written(promotion, rules.redact_text), rules)
    if MEMORY in wanted:
        others = [one for one in stood if one.memory != promotion.id]
        wanted |= memory_files.with_index(files, wanted[MEMORY], others, at)
    return await memory_files.changed_files(ports, rules, files, wanted)


def _without_line(files: MemoryFiles, promotion: Record, rules: TenantRules) -> dict[Path, str]:
    memory, diary = files.memory, files.texts[DREAMS]
    wanted: dict[Path, str] = {}
    if memory is not None:
        wanted[MEMORY] = without(rules.redact_text(memory), [standing_of(promotion)])
    if diary is not None:
        wanted[DREAMS] = without_line(
            rules.redact_text(diary), diary_line(promotion_of_record(promotion))
        )
    return wanted


async def _superseded(ports: Ports, tenant: str, agent: str, memory: str) -> list[RecordChange]:
    """A proposal that quotes the memory can land no more, and quotes nothing."""
    waiting = await ports.records.list(tenant, RecordType.DREAM, link=proposed(agent))
    changes = []
    for record in waiting:
        dream = dream_of(record)
        if any(one.memory == memory for one in dream.promoted):
            over = replace(dream, status=DreamStatus.SUPERSEDED, after=None, promoted=())
            changes.append(dream_change(tenant, over, record.revision))
    return changes


async def _find(ports: Ports, tenant: str, agent: str, id: str) -> Record:
    record = await find(ports, tenant, RecordType.MEMORY, id)
    if record.body["agentId"] != agent:
        raise NotFound(f"there is no memory {id}")
    return record


async def _has_room(ports: Ports, tenant: str, agent: str) -> None:
    [count] = await ports.records.count(tenant, RecordType.MEMORY, [of_agent(agent)])
    if count >= MOST_MEMORIES:
        raise WorkspaceTooLarge(
            f"an agent remembers at most {MOST_MEMORIES} things", max=MOST_MEMORIES
        )
