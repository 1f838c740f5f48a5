"""Field types shared by request bodies and queries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.core.text_validation import (
    EMAIL_PATTERN,
    LINE_PATTERN,
    MAX_EMAIL_LENGTH,
    MAX_LINE_LENGTH,
    RESERVED_SLUGS,
)
from carrel.server.http.endpoint import RequestModel

MAX_PAGE_ITEMS: Final = 500
"""Maximum items per page."""

Line = Annotated[str, Meta(min_length=1, max_length=MAX_LINE_LENGTH, pattern=LINE_PATTERN)]
Email = Annotated[
    str,
    Meta(
        max_length=MAX_EMAIL_LENGTH,
        pattern=EMAIL_PATTERN,
        description="Case-insensitive.",
    ),
]
Slug = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$",
        extra_json_schema={"not": {"enum": sorted(RESERVED_SLUGS)}},
    ),
]
Id = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


Total = Annotated[
    int | None,
    Meta(description="Number of items on all pages; only on the first, null if not known."),
]
Search = Annotated[
    str, Meta(max_length=200, description="Words of the names, each by its beginning.")
]


Instant = Annotated[datetime, Meta(tz=True)]


class PageQuery(RequestModel, frozen=True):
    """Page size and position."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS)] = 100
    cursor: Annotated[
        str, Meta(pattern="^[A-Za-z0-9._-]{0,128}$", description="`next` of the previous page.")
    ] = ""


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970 of a time in a query."""
    return round(at.timestamp() * 1000)


def set_fields(body: msgspec.Struct) -> dict[str, Any]:
    """The fields of a patch that were sent."""
    fields = msgspec.structs.asdict(body)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}
