"""Events of reviews: a pinned file waits for one, or was reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.commit import Write
from carrel.core.store.event import REVIEW_ANSWERED, REVIEW_REQUESTED, EventDraft

_DECISIONS: Final = {
    "accept": "accepted",
    "roll": "rolled back",
    "decline": "declined",
    "merge": "merged",
}
"""Decision by the first word of the reason of a review's commit."""
_OFFERING_KINDS: Final = (ScopeKind.TEMPLATE, ScopeKind.DEFAULTS)


def requested_reviews(
    scope: Scope, writes: Sequence[Write], classes: FileClassRules
) -> tuple[EventDraft, ...]:
    """Events of writes to a template or the defaults that agents are offered for review."""
    if scope.kind not in _OFFERING_KINDS:
        return ()
    template = scope.name if scope.kind is ScopeKind.TEMPLATE else None
    return tuple(
        EventDraft(
            scope.tenant,
            REVIEW_REQUESTED,
            {"path": write.path.text, "templateId": template},
        )
        for write in writes
        if write.entry is not None and classes.class_of(write.path) is FileClass.PINNED
    )


def answered_review(agent: Scope, path: Path, reason: str) -> EventDraft:
    """Event of a review's commit for one agent, by the commit's reason."""
    decision = _DECISIONS.get(reason.split(" ", 1)[0], "changed")
    payload = {"agentId": agent.name, "path": path.text, "decision": decision}
    return EventDraft(agent.tenant, REVIEW_ANSWERED, payload)
