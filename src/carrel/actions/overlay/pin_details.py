"""Details of pinned files for reviewers: author, reason and token counts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.blob_contents import count_tokens
from carrel.actions.overlay.pin_reviews import PinReview
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Version
from carrel.ports import Ports


class PinDetail(Struct, frozen=True):
    status: PinReview
    latest_version: Version | None
    """History entry of the offered version."""
    pinned_tokens: int | None
    """None if there is no such text or it cannot be read."""
    latest_tokens: int | None
    served_tokens: int | None


async def load_pin_details(ports: Ports, statuses: Sequence[PinReview]) -> tuple[PinDetail, ...]:
    """Load the details of many pins with one query of history and one of contents."""
    pins = [status.pin for status in statuses]
    version_keys = [
        (pin.latest_from, pin.path, pin.latest_head.version)
        for pin in pins
        if pin.latest_from and pin.latest_head
    ]
    versions = (
        dict(zip(version_keys, await ports.trees.versions(version_keys), strict=True))
        if version_keys
        else {}
    )
    blobs = {b for pin in pins for b in (pin.pinned, pin.latest, pin.served) if b}
    counts = await count_tokens(ports, blobs)

    def tokens(blob: Blob | None) -> int | None:
        count = counts[blob.digest] if blob else None
        return count if isinstance(count, int) else None

    def find_version(status: PinReview) -> Version | None:
        scope, head = status.pin.latest_from, status.pin.latest_head
        return versions.get((scope, status.pin.path, head.version)) if scope and head else None

    return tuple(
        PinDetail(
            review,
            find_version(review),
            tokens(review.pin.pinned),
            tokens(review.pin.latest),
            tokens(review.pin.served),
        )
        for review in statuses
    )
