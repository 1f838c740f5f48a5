"""Local dates and timezone names."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from carrel.actions.timezones import local_date, parse_timezone
from carrel.core.errors import ValidationError

LATE = int(datetime(2026, 3, 1, 23, 30, tzinfo=UTC).timestamp() * 1000)


def test_a_local_date_is_that_of_the_timezone() -> None:
    assert local_date(LATE, None) == date(2026, 3, 1)
    assert local_date(LATE, "Asia/Tokyo") == date(2026, 3, 2)
    assert local_date(LATE, "America/New_York") == date(2026, 3, 1)


def test_an_unknown_timezone_falls_back_to_utc() -> None:
    assert local_date(LATE, "Mars/Olympus") == date(2026, 3, 1)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "\0", "é"])
def test_an_invalid_timezone_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValidationError, match="no such timezone"):
        parse_timezone(name)
