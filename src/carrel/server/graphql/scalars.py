"""Custom scalars: DateTime, Whole and JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from ariadne import ScalarType
from graphql import GraphQLError

_MAX_INTEGER: Final = 2**53

date_time: Final = ScalarType("DateTime")
whole_scalar: Final = ScalarType("Whole")
json: Final = ScalarType("JSON")
SCALARS: Final = (date_time, whole_scalar, json)


@date_time.serializer
def serialize_date_time(at: int) -> str:
    """Format milliseconds as RFC 3339 in UTC."""
    second = datetime.fromtimestamp(at // 1000, UTC).isoformat()[:-6]
    return f"{second}.{at % 1000:03}Z"


@date_time.value_parser
def parse_date_time(value: Any) -> int:
    """Parse RFC 3339 with a time zone as milliseconds."""
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise GraphQLError("DateTime must be an RFC 3339 timestamp with a time zone")
    return round(at.timestamp() * 1000)


@whole_scalar.value_parser
def parse_whole(value: Any) -> int:
    """Parse an integer; JSON may write it as a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MAX_INTEGER:
        raise GraphQLError("Whole must be an integer of up to 53 bits")
    return value
