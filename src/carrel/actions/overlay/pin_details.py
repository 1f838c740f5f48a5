"""What a reviewer wants to know of a pinned file beside its texts: who wrote it, why, how long."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.blob_contents import counts_of
from carrel.actions.overlay.pins import PinReview
from carrel.core.store.tree import Blob, Version
from carrel.ports import Ports


class PinDetail(Struct, frozen=True):
    status: PinReview
    told: Version | None
    """The line of history that says what is offered now."""
    pinned_tokens: int | None
    """None where there is no such text, or it cannot be had."""
    latest_tokens: int | None


async def load_pin_details(ports: Ports, statuses: Sequence[PinReview]) -> tuple[PinDetail, ...]:
    """The same of each, however many, in one question each of the history and the contents."""
    pins = [status.pin for status in statuses]
    asks = [
        (pin.latest_from, pin.path, pin.latest_head.version)
        for pin in pins
        if pin.latest_from and pin.latest_head
    ]
    found = dict(zip(asks, await ports.trees.versions(asks), strict=True)) if asks else {}
    counts = await counts_of(ports, {b for pin in pins for b in (pin.pinned, pin.latest) if b})

    def tokens(blob: Blob | None) -> int | None:
        count = counts[blob.digest] if blob else None
        return count if isinstance(count, int) else None

    def told(status: PinReview) -> Version | None:
        where, head = status.pin.latest_from, status.pin.latest_head
        return found.get((where, status.pin.path, head.version)) if where and head else None

    return tuple(
        PinDetail(one, told(one), tokens(one.pin.pinned), tokens(one.pin.latest))
        for one in statuses
    )
