"""The scalars of the schema: moments, whole numbers and JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from ariadne import ScalarType
from graphql import GraphQLError

_WIDEST: Final = 2**53

date_time: Final = ScalarType("DateTime")
whole: Final = ScalarType("Whole")
json: Final = ScalarType("JSON")
SCALARS: Final = (date_time, whole, json)


@date_time.serializer
def moment(at: int) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    second = datetime.fromtimestamp(at // 1000, UTC).isoformat()[:-6]
    return f"{second}.{at % 1000:03}Z"


@whole.value_parser
def whole_number(value: Any) -> int:
    """A number without a fraction, as JSON may write it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _WIDEST:
        raise GraphQLError("Whole is a number without a fraction, of up to 53 bits")
    return value
