"""One night of an agent: all that a dream is decided from, in a bounded number of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.memory import memory_files as mind_files
from carrel.actions.memory.memory_files import MindFiles
from carrel.actions.overlay.agent_layers import lineage_of
from carrel.actions.policy.tenant_rules import Rules
from carrel.actions.records import each
from carrel.core.agents.config import Dreaming, config_of
from carrel.core.identifiers import Moment, Scope
from carrel.core.memory.dream_records import as_written, proposed, standing, standing_of
from carrel.core.memory.memory import memory_of
from carrel.core.memory.promoted_lines import Written, missing, written
from carrel.core.memory.promotion_score import (
    MOST_CONSIDERED,
    Candidate,
    Rejected,
    best_first,
    counted,
    weighed,
)
from carrel.core.memory.recall import Tally
from carrel.core.store.record import Noun, Record
from carrel.ports import World

_AT_ONCE: Final = 1000
"""Records asked for in one question, so that nobody waits long for a store that answers at once."""


@dataclass(frozen=True, slots=True)
class Night:
    own: Scope
    at: Moment
    settings: Dreaming
    files: MindFiles
    tallies: Sequence[Tally]
    memories: Mapping[str, Record]
    """Those that have come up and are there."""
    promoted: Sequence[str]
    """Those of them that were promoted before."""
    standing: Sequence[Record]
    """The promotions whose lines stand in MEMORY.md, as far as the ledger knows."""
    waiting: Sequence[Record]
    """What was proposed and is not answered yet."""
    rest: Record | None

    @property
    def gone(self) -> list[str]:
        """What has come up and was forgotten since."""
        return [one.memory for one in self.tallies if one.memory not in self.memories]

    @property
    def contents(self) -> Mapping[str, str]:
        return {id: record.body["content"] for id, record in self.memories.items()}


@dataclass(frozen=True, slots=True)
class Decided:
    candidates: int
    written: Written
    rejected: Sequence[Rejected]
    reasons: Mapping[str, int]


async def night_of(world: World, own: Scope, rules: Rules) -> Night:
    """Everything as it is now. Raises Missing where there is no such agent any more."""
    tenant, agent = own.tenant, own.name
    lineage = await lineage_of(world, tenant, agent)
    [rest] = await world.records.get(tenant, Noun.DREAM, [agent])
    files = await mind_files.read(world, tenant, agent, rules)
    tallies = await world.recalls.tallies(tenant, agent, limit=MOST_CONSIDERED)
    ids = [one.memory for one in tallies]
    memories = await _records(world, tenant, Noun.MEMORY, ids)
    promotions = await _records(world, tenant, Noun.PROMOTION, ids)
    ledger = each(world, tenant, Noun.PROMOTION, standing(agent))
    return Night(
        own,
        world.clock.now(),
        config_of(lineage.agent.body.get("config") or {}).dreaming,
        files,
        tallies,
        {id: record for id, record in memories.items() if record.body["agentId"] == agent},
        [id for id in ids if id in promotions],
        [as_written(record, rules.redacted) async for record in ledger],
        await world.records.list(tenant, Noun.DREAM, link=proposed(agent)),
        rest,
    )


async def _records(
    world: World, tenant: str, noun: Noun, ids: Sequence[str]
) -> Mapping[str, Record]:
    found: dict[str, Record] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = await world.records.get(tenant, noun, ids[start : start + _AT_ONCE])
        found |= {record.id: record for record in some if record}
    return found


def decide(night: Night, rules: Rules) -> Decided:
    """What is promoted and what is not, and why.

    What is written is redacted anew: a secret may have become one since it was remembered.
    """
    settings, before = night.settings, set(night.promoted)
    candidates = [
        _candidate(tally, night.memories[tally.memory])
        for tally in night.tallies
        if tally.memory in night.memories and tally.memory not in before
    ]
    good, rejected = weighed(candidates, settings, night.at)
    ledger = [standing_of(record) for record in night.standing]
    memory = None if night.files.memory is None else rules.redacted(night.files.memory)
    lost = missing(memory or "", ledger)
    made = written(
        memory,
        [one for one in ledger if one not in lost],
        good,
        night.at,
        (settings.max_promotions_per_sweep, settings.max_chars),
        rules.redacted,
    )
    every = best_first([*rejected, *made.rejected])
    return Decided(len(candidates), made, every, counted(every))


def _candidate(tally: Tally, record: Record) -> Candidate:
    memory = memory_of(record)
    return Candidate(memory.id, memory.content, memory.mode, tally)
