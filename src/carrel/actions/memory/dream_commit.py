"""What a dream comes to: the files as they become, and the records that are kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from carrel.actions.memory import memory_files as mind_files
from carrel.actions.memory.dream_inputs import Night
from carrel.actions.memory.memory_files import MindFiles
from carrel.actions.policy.tenant_rules import Rules
from carrel.core.identifiers import Moment, Path, Scope
from carrel.core.memory.dream_log import DREAMS, noted
from carrel.core.memory.dream_records import (
    MOST_KEPT,
    MOST_TOLD,
    Dream,
    Rest,
    Status,
    dream_change,
    dream_of,
    fallen_change,
    promotion_change,
    rest_change,
    standing_of,
)
from carrel.core.memory.memory import memory_change, memory_of, of_agent
from carrel.core.memory.promoted_lines import MEMORY, Promotion, Standing, heading_of, missing
from carrel.core.store.record import Change, Noun, Record
from carrel.ports import World


def landing(
    files: MindFiles,
    rules: Rules,
    ledger: Sequence[Record],
    dream: Dream,
    memories: Mapping[str, Record],
) -> tuple[dict[Path, str], list[Change]]:
    """The files as they become, and what the ledger has of it."""
    tenant, agent, at = files.own.tenant, dream.agent, dream.started
    after = dream.after if dream.after is not None else files.memory
    after = None if after is None else rules.redacted(after)
    fallen = {one.memory for one in missing(after or "", [standing_of(one) for one in ledger])}
    fallen |= set(dream.evicted)
    stood = {
        one.memory: Standing(one.memory, heading_of(at), one.line, at) for one in dream.promoted
    }
    changes = [fallen_change(record) for record in ledger if record.id in fallen]
    for one in dream.promoted:
        changes.append(promotion_change(tenant, agent, one, stood[one.memory]))
        record = memories[one.memory]
        told = replace(memory_of(record), promoted=at)
        changes.append(memory_change(tenant, told, record.revision))
    counts = (dream.candidates, dream.skipped)
    wanted = {DREAMS: noted(files.texts[DREAMS], at, counts, dream.promoted)}
    if after is not None:
        still = [standing_of(one) for one in ledger if one.id not in fallen]
        wanted |= {MEMORY: after}
        wanted |= mind_files.with_index(files, after, [*still, *stood.values()], at)
    return wanted, changes


def kept(tenant: str, dream: Dream) -> Change:
    """A dream's record: whole while it is proposed, and afterwards without any memory's text."""
    told = replace(dream, rejected=dream.rejected[:MOST_TOLD])
    if dream.status is not Status.PROPOSED:
        bare = tuple(replace(one, line="") for one in dream.promoted)
        told = replace(told, promoted=bare, after=None)
    return dream_change(tenant, told, 0)


def rested(night: Night, dream: Dream) -> Change:
    rest = Rest(last=night.at, dream=dream.id)
    return rest_change(night.own.tenant, night.own.name, rest, night.rest)


async def oldest(world: World, own: Scope) -> list[Change]:
    """The dreams that go, so that not too many are kept."""
    found = await world.records.list(own.tenant, Noun.DREAM, link=of_agent(own.name), limit=500)
    ended = [one for one in found if one.body.get("status") != Status.PROPOSED]
    gone = ended[: max(0, len(found) + 1 - MOST_KEPT)]
    return [Change(one.tenant, one.noun, one.id, None, one.revision) for one in gone]


def over(
    record: Record,
    status: Status,
    by: str | None = None,
    at: Moment | None = None,
    reason: str = "",
) -> Change:
    """A proposal that waits no more: it keeps no memory's text."""
    dream = dream_of(record)
    bare: tuple[Promotion, ...] = tuple(replace(one, line="") for one in dream.promoted)
    answered = replace(
        dream,
        status=status,
        promoted=bare,
        after=None,
        answered=at,
        answered_by=by,
        reason=reason,
    )
    return dream_change(record.tenant, answered, record.revision)
