"""Decline of an offered pinned file for one agent."""

from __future__ import annotations

from msgspec import Struct

from carrel.actions.overlay.pin_review_session import start_review
from carrel.actions.overlay.pin_reviews import get_reviewed_agent, status_after
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.errors import Busy, ValidationError
from carrel.core.identifiers import Digest, Path
from carrel.core.overlay import pins
from carrel.core.overlay.file_reviews import DECLINE_PREFIX
from carrel.core.overlay.pins import PinStatus
from carrel.core.overlay.review_records import MAX_REASON_LENGTH, ReviewDecision
from carrel.core.store.entry import OFFERED_REMOVAL
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports


class DeclinedOffer(Struct, frozen=True):
    """Offer that a person declines, and why."""

    reviewed: Digest | None
    """None if it is the file's removal."""
    reason: str


@retry_on_conflict()
async def decline(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    declined: DeclinedOffer,
    idempotency_key: IdempotencyKey | None = None,
) -> PinStatus:
    """Keep what an agent is served and no longer offer the reviewed content.

    The next update is offered again. Raises WorkspaceConflict if the offered content changed since
    the review, NotFound if nothing is offered, ValidationError without a reason.
    """
    review = await start_review(ports, actor, path, idempotency_key)
    reviewed, reason = declined.reviewed, parse_reason(review.rules, declined.reason)
    agent = await get_reviewed_agent(ports, actor, name)
    stack = build_stack(agent)
    layers = await ports.trees.read(stack, (path,))
    planned = pins.plan_decline(layers, path, reviewed)
    if planned is None:
        return pins.pin_status(path, layers)
    record = review.record(ReviewDecision.DECLINED, reviewed, reason)
    text = decline_reason(path, reviewed, reason)
    head = await review.commit(agent, planned, text, record)
    if head is None:
        raise Busy.with_conflicts(str(path))
    return status_after(stack, layers, path, head)


def decline_reason(path: Path, reviewed: Digest | None, reason: str) -> str:
    """Reason of the commit: what was declined, and why."""
    return f"{DECLINE_PREFIX}{path.text}, {reviewed or OFFERED_REMOVAL}: {reason}"


def parse_reason(rules: TenantRules, text: str) -> str:
    """Return the redacted reason on one line. Raises ValidationError if it is empty or too long."""
    reason = " ".join(rules.redact_text(text).split())
    if not reason:
        raise ValidationError("a decline needs a reason")
    if len(reason) > MAX_REASON_LENGTH:
        raise ValidationError(f"a reason has at most {MAX_REASON_LENGTH} characters")
    return reason
