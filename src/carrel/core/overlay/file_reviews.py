"""Review by which a pinned file of an agent came to be served."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from carrel.core.identifiers import ScopeKind
from carrel.core.overlay.agent_resolution import is_own_file
from carrel.core.overlay.compose import File, Layers
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.entry import Head, Version

ACCEPT_PREFIX: Final = "accept "
ROLL_BACK_PREFIX: Final = "roll "
DECLINE_PREFIX: Final = "decline "
MERGE_PREFIX: Final = "merge "
"""Beginnings of the reasons of commits that review a pin."""


class ReviewKind(StrEnum):
    """How the content of a pinned file was approved."""

    RECORDED = "recorded"
    """With the agent, or when the file became pinned."""
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled-back"
    MERGED = "merged"
    """Merged into the agent's override."""
    DECLINED = "declined"
    """Kept when an offered content was declined."""
    OVERRIDDEN = "overridden"
    """Written for this agent, instead of the offered content."""


_KINDS_BY_PREFIX: Final = (
    (ACCEPT_PREFIX, ReviewKind.ACCEPTED),
    (ROLL_BACK_PREFIX, ReviewKind.ROLLED_BACK),
    (MERGE_PREFIX, ReviewKind.MERGED),
    (DECLINE_PREFIX, ReviewKind.DECLINED),
)


def review_kind(file: File, version: Version) -> ReviewKind | None:
    """Return how a file was approved; None unless it is pinned."""
    if file.file_class is not FileClass.PINNED or not is_own_file(file):
        return None
    for prefix, kind in _KINDS_BY_PREFIX:
        if version.reason.startswith(prefix):
            return kind
    is_pin = file.entry.base is not None and file.entry.base.digest == file.blob.digest
    return ReviewKind.RECORDED if is_pin else ReviewKind.OVERRIDDEN


def find_origin(file: File, layers: Layers) -> tuple[int, Head] | None:
    """Return the layer below the agent that has the content of a pin, and its head there."""
    for depth, tree in enumerate(layers):
        if tree.scope.kind in {ScopeKind.AGENT, ScopeKind.PINS}:
            continue
        head = tree.heads.get(file.path)
        if head and head.entry and head.entry.blob.digest == file.blob.digest:
            return depth, head
    return None
