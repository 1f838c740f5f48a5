"""Merge of an offered pinned file into an agent's override."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from carrel.actions.overlay.pin_review_session import describe_change, start_review
from carrel.actions.overlay.pin_reviews import get_reviewed_agent, status_after
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.files.three_way_merge import (
    MergedText,
    MergeLabels,
    has_conflict_marks,
    merge_texts,
)
from carrel.core.identifiers import Digest, Path
from carrel.core.overlay import pins
from carrel.core.overlay.agent_resolution import resolve_as
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.file_reviews import MERGE_PREFIX
from carrel.core.overlay.pins import PinStatus
from carrel.core.overlay.review_records import ReviewDecision
from carrel.core.overlay.write_condition import WriteCondition, parse_entity_tags
from carrel.core.store.blob import Blob
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports

_LABELS: Final = MergeLabels("override", "pinned", "offered")


class MergeProposal(Struct, frozen=True):
    """Merge of an override with the offered content, to be edited before it is saved."""

    offered: Digest
    etag: str
    """ETag of the override that was merged."""
    merged: MergedText


class MergedOverride(Struct, frozen=True):
    """Merged text, and what it was made from."""

    reviewed: Digest
    text: str
    if_match: str
    """ETag of the override."""


async def propose_merge(ports: Ports, actor: Actor, name: str, path: Path) -> MergeProposal:
    """Merge the offered content into the override, from the pinned one; nothing is stored.

    Raises NotFound if nothing is offered, Conflict without an override, or for a text that cannot
    be merged.
    """
    await start_review(ports, actor, path)
    stack = build_stack(await get_reviewed_agent(ports, actor, name))
    layers = await ports.trees.read(stack, (path,))
    pin, file = pins.pin_status(path, layers), resolve_as(FileClass.PINNED, path, layers)
    if pin.latest is None or pin.latest == pin.pinned:
        raise NotFound(f"no update of {path} is offered")
    if file is None or not pin.overridden:
        raise Conflict(f"{path} has no override to merge; accept the update")
    blobs = (pin.pinned, file.blob, pin.latest)
    base, ours, theirs = [await _read_text(ports, path, blob) for blob in blobs]
    merged = await asyncio.to_thread(merge_texts, base, ours, theirs, _LABELS)
    return MergeProposal(pin.latest.digest, file.etag, merged)


@retry_on_conflict()
async def merge(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    edited: MergedOverride,
    idempotency_key: IdempotencyKey | None = None,
) -> PinStatus:
    """Replace an override by a merged text, and pin the offered content, in one commit.

    Raises WorkspaceConflict if the offer or the override changed since they were read,
    ValidationError if the text still has the marks of a conflict.
    """
    review = await start_review(ports, actor, path, idempotency_key)
    if has_conflict_marks(edited.text):
        raise ValidationError("the text has unresolved conflicts: remove their marks")
    agent = await get_reviewed_agent(ports, actor, name)
    stack = build_stack(agent)
    content = edited.text.encode()
    redacted = await asyncio.to_thread(review.rules.redact_file, stack[0], content)
    [blob] = await ports.blobs.put((redacted.content,))
    layers = await ports.trees.read(stack, (path,))
    condition = WriteCondition(parse_entity_tags(edited.if_match))
    planned = pins.plan_merge(layers, path, edited.reviewed, blob, condition)
    reason = f"{MERGE_PREFIX}{path.text}{describe_change(layers, planned)}"
    record = review.record(ReviewDecision.MERGED, edited.reviewed)
    head = await review.commit(agent, planned, reason, record)
    if head is None:
        raise Busy.with_conflicts(str(path))
    return status_after(stack, layers, path, head)


async def _read_text(ports: Ports, path: Path, blob: Blob | None) -> str:
    """Read a text. Raises Conflict for bytes that are none."""
    if blob is None:
        return ""
    contents = await ports.blobs.get([blob])
    try:
        return contents[blob.digest].decode()
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not a text that can be merged") from None
