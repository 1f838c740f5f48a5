"""Places by whose clocks people and agents live."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """Raises Malformed where there is no timezone of this name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValidationError(f"there is no timezone {name[:80]!a}") from None


def day(at: TimestampMs, timezone: str | None) -> date:
    """The day that it is there at this moment; in UTC where no place is named, or none known."""
    return _day_at(at // 60_000, timezone)


@lru_cache(maxsize=1024)
def _day_at(minute: int, timezone: str | None) -> date:
    """Days begin with a minute: of the places of today none is seconds apart from another."""
    try:
        there = zone(timezone) if timezone else UTC
    except ValidationError:
        there = UTC
    return datetime.fromtimestamp(minute * 60, there).date()
