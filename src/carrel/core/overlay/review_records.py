"""Records of reviews: what a person decided about an offered file, for how many agents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.store.record import Record, RecordChange, RecordType, decode_body, encode_body

REVIEW_PREFIX: Final = "rev"
MAX_REASON_LENGTH: Final = 1_000
_LATEST_TIME: Final = (1 << 48) - 1


class ReviewDecision(StrEnum):
    """What a person decided about an offered content."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    MERGED = "merged"
    ROLLED_BACK = "rolled-back"


class ReviewRecord(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Stored body of a review."""

    decision: ReviewDecision
    path: str
    at: TimestampMs
    """Time of every version that the review wrote."""
    author: str
    agent_id: str | None = None
    """Set if it was for one agent."""
    template_id: str | None = None
    """Template whose agents were changed, or of the one agent."""
    sha256: Digest | None = None
    """Digest of the reviewed content, as `sha256:…`; None if it was the file's removal."""
    reason: str = ""
    part: str = ""
    """Which of the agents were chosen; empty for all."""
    changed: int = 0
    failed: int = 0
    rolls_back: str | None = None
    """Review that this one rolled back."""
    rolled_back_by: str | None = None
    """Latest review that rolled this one back."""

    @property
    def layer(self) -> str:
        return self.template_id or ""


def new_review_id(at: TimestampMs, id: str) -> str:
    """Id of a review that sorts before those of earlier ones; `id` makes it unique."""
    return f"{REVIEW_PREFIX}_{_LATEST_TIME - at:012x}{id[-12:]}"


def review_from_record(record: Record) -> ReviewRecord:
    return decode_body(record, ReviewRecord)


def review_index_key(
    *, agent: str = "", template: str = "", decision: ReviewDecision | None = None
) -> str:
    """Index key of reviews of an agent or a template, or of all, with one decision or any.

    By that of an agent, its reviews are deleted with it: see `delete_agent_records`.
    """
    subject = f"agent:{agent}" if agent else f"template:{template}" if template else "all"
    return f"{subject}/{decision}" if decision else subject


def review_change(tenant: str, id: str, review: ReviewRecord) -> RecordChange:
    """Record change that stores a review."""
    subjects = [
        review_index_key(agent=agent, template=template, decision=decision)
        for agent, template in _subjects(review)
        for decision in (None, review.decision)
    ]
    return RecordChange(
        tenant, RecordType.REVIEW, id, encode_body(review), index_keys=tuple(subjects)
    )


def _subjects(review: ReviewRecord) -> Iterable[tuple[str, str]]:
    yield "", ""
    if review.template_id:
        yield "", review.template_id
    if review.agent_id:
        yield review.agent_id, ""


class FollowerPart(Struct, frozen=True):
    """Chosen part of the agents that inherit a file. Exactly one field is set."""

    count: int | None = None
    share: float | None = None
    """Percentage, above 0 and up to 100."""
    tag: str | None = None
    agents: tuple[str, ...] | None = None
    """Ids or slugs."""

    @property
    def text(self) -> str:
        """The part in words, for lists of reviews."""
        if self.count is not None:
            return f"{self.count} agents" if self.count != 1 else "1 agent"
        if self.share is not None:
            return f"{self.share:g} %"
        if self.tag is not None:
            return f"tag {self.tag}"
        return f"{len(self.agents or ())} chosen"


def choose_part(part: FollowerPart, ids: Sequence[str], sha256: str) -> frozenset[str]:
    """Choose a number or a share of agents, in an order that depends on the content alone.

    The order ranks all that inherit the file, whether they have accepted it or not: the same part
    of the same agents is the same choice, and a larger part contains the smaller.
    """
    if part.count is not None:
        number = part.count
    else:
        assert part.share is not None
        number = -int(-(len(ids) * part.share) // 100)

    def rank(id: str) -> bytes:
        return hashlib.sha256(f"{sha256}\n{id}".encode()).digest()

    return frozenset(sorted(ids, key=rank)[:number])
