"""Where a caller sits: in which world, as whom, and what they have left open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from weakref import WeakSet

from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.server.python.event_feed import EventStream

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE: Final = 500

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True)
class CallerContext:
    ports: Ports
    actor: Actor
    feeds: WeakSet[EventStream] = field(default_factory=WeakSet)
    """To be closed before the world is."""


class Resource:
    """Whatever is done at a seat."""

    def __init__(self, seat: CallerContext) -> None:
        self._seat = seat
        self._ports, self._actor = seat.ports, seat.actor


def when(at: TimestampMs) -> datetime:
    return _EPOCH + timedelta(milliseconds=at)


def milliseconds(at: datetime) -> TimestampMs:
    """Raises Malformed for a time that does not say its zone."""
    if at.tzinfo is None:
        raise ValidationError("a time needs a timezone")
    return (at - _EPOCH) // timedelta(milliseconds=1)


def one_of(kind: Callable[[str], Choice], text: str, what: str) -> Choice:
    """Raises Malformed for a word that is none of these."""
    try:
        return kind(text)
    except ValueError:
        raise ValidationError(f"{text!r} is not a {what}") from None


def only(fields: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Raises TypeError for a field that there is not, as a function does for an argument."""
    for name in fields:
        if name not in known.__annotations__:
            can_be = ", ".join(known.__annotations__)
            raise TypeError(f"there is no field {name!r} to change: it can be {can_be}")
    return dict(fields)


async def every(page: Callable[[str, int], Awaitable[Page[Record]]]) -> list[Record]:
    """All records of all pages."""
    found = await page("", _PAGE)
    items = list(found.items)
    while found.next is not None:
        found = await page(found.next, _PAGE)
        items += found.items
    return items
