"""What is kept of dreams: the ledger of what was promoted, each dream, and when the next is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.memory.memory import of_agent
from carrel.core.memory.promoted_lines import PromotedLine, Promotion
from carrel.core.memory.promotion_score import RejectedCandidate
from carrel.core.store.record import Record, RecordChange, RecordType

MOST_KEPT: Final = 50
"""Dreams of an agent that are kept; the oldest go."""
MOST_TOLD: Final = 200
"""Rejected candidates that are kept with a dream: the best ones, and of all how many for what."""
PROPOSALS: Final = "proposed"
"""The link of all dreams of a tenant that wait to be looked at."""
_LONGEST_WAIT: Final = 7 * 86_400
"""Seconds between attempts that fail, where dreams are not further apart anyway."""


class DreamStatus(StrEnum):
    DONE = "done"
    PROPOSED = "proposed"
    """Waits for somebody to look at it."""
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    """Something has changed since, so that it can land no more."""


class Dream(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One sweep, as its record has it: no word of what any memory says but in a proposal."""

    id: str
    agent: str
    by: str
    started: TimestampMs
    status: DreamStatus = DreamStatus.DONE
    candidates: int = 0
    skipped: int = 0
    """Memories that came up and were promoted before."""
    promoted: tuple[Promotion, ...] = ()
    """Their lines only where it is proposed."""
    rejected: tuple[RejectedCandidate, ...] = ()
    reasons: Mapping[str, int] = {}
    evicted: tuple[str, ...] = ()
    """The memories whose lines made room."""
    seen: Digest | None = None
    """What MEMORY.md was when it was proposed; None where there was none."""
    after: str | None = None
    """What MEMORY.md would become."""
    answered: TimestampMs | None = None
    answered_by: str | None = None
    reason: str = ""


class DreamSchedule(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How an agent's dreams have gone of late."""

    last: TimestampMs | None = None
    """When it dreamed last."""
    dream: str = ""
    tried: TimestampMs | None = None
    failures: int = 0
    """In a row, since the last that went well."""

    def due(self, interval_secs: int) -> TimestampMs:
        """When the next is due: after a failure later than after a success, and ever later."""
        latest = max(self.last or 0, self.tried or 0)
        if not latest:
            return 0
        longest = max(interval_secs, _LONGEST_WAIT)
        wait: int = interval_secs * 2 ** min(self.failures, 10)
        return latest + 1000 * min(longest, wait)


def promoted_index(agent: str) -> str:
    """The link of promotions whose lines stand in MEMORY.md."""
    return f"standing:{agent}"


def proposed(agent: str) -> str:
    """The link of a dream that waits to be looked at."""
    return f"proposed:{agent}"


def dream_of(record: Record) -> Dream:
    return msgspec.convert({"id": record.id, **record.body}, Dream)


def dream_change(tenant: str, dream: Dream, expected: int) -> RecordChange:
    body = msgspec.to_builtins(dream)
    del body["id"]
    index_keys: tuple[str, ...] = (of_agent(dream.agent),)
    if dream.status is DreamStatus.PROPOSED:
        index_keys += (proposed(dream.agent), PROPOSALS)
    return RecordChange(tenant, RecordType.DREAM, dream.id, body, expected, index_keys=index_keys)


def schedule_of(record: Record | None) -> DreamSchedule:
    return DreamSchedule() if record is None else msgspec.convert(record.body, DreamSchedule)


def rest_change(tenant: str, agent: str, rest: DreamSchedule, was: Record | None) -> RecordChange:
    """Under the agent's own id, which is no dream's."""
    body = msgspec.to_builtins(rest)
    return RecordChange(tenant, RecordType.DREAM, agent, body, was.revision if was else 0)


def promotion_change(
    tenant: str, agent: str, promotion: Promotion, stood: PromotedLine
) -> RecordChange:
    """That a memory was promoted. Only one can say so: whoever comes second is refused."""
    body: dict[str, Any] = {**msgspec.to_builtins(promotion), "agentId": agent}
    body |= {"heading": stood.heading, "at": stood.at}
    index_keys = (of_agent(agent), promoted_index(agent))
    return RecordChange(
        tenant, RecordType.PROMOTION, promotion.memory, body, 0, index_keys=index_keys
    )


def demotion_change(record: Record) -> RecordChange:
    """That its line stands in MEMORY.md no more; promoted it was all the same."""
    index_keys = (of_agent(record.body["agentId"]),)
    return RecordChange(
        record.tenant, record.type, record.id, record.body, record.revision, index_keys=index_keys
    )


def promotion_of_record(record: Record) -> Promotion:
    return msgspec.convert(record.body, Promotion)


def as_written(record: Record, admitted: Callable[[str], str]) -> Record:
    """A promotion with its line as a file has it, in which what became a secret is redacted."""
    return replace(record, body={**record.body, "line": admitted(record.body["line"])})


def standing_of(record: Record) -> PromotedLine:
    body = record.body
    return PromotedLine(record.id, body["heading"], body["line"], body["at"])
