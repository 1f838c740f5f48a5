"""Time zones of people and agents."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs


@lru_cache(maxsize=1024)
def parse_timezone(name: str) -> tzinfo:
    """Return the time zone of an IANA name. Raises ValidationError."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValidationError(f"no such timezone: {name[:80]!a}") from None


def local_date(timestamp: TimestampMs, timezone: str | None) -> date:
    """Return the local date at a timestamp; UTC if the zone is None or unknown."""
    return _date_at_minute(timestamp // 60_000, timezone)


@lru_cache(maxsize=1024)
def _date_at_minute(minute: int, timezone: str | None) -> date:
    """Cached by minute: no current time zone has an offset with seconds."""
    try:
        tz = parse_timezone(timezone) if timezone else UTC
    except ValidationError:
        tz = UTC
    return datetime.fromtimestamp(minute * 60, tz).date()
