"""Fields that many bodies and queries have in common."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.core.text_validation import EMAIL, LINE, LONGEST_EMAIL, LONGEST_LINE, RESERVED
from carrel.server.http.endpoint import RequestModel

MOST: Final = 500
"""Items of the longest page."""

Line = Annotated[str, Meta(min_length=1, max_length=LONGEST_LINE, pattern=LINE)]
Email = Annotated[
    str,
    Meta(max_length=LONGEST_EMAIL, pattern=EMAIL, description="Letter case makes no difference."),
]
Slug = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$",
        extra_json_schema={"not": {"enum": sorted(RESERVED)}},
    ),
]
Id = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class PageQuery(RequestModel, frozen=True):
    """Which part of a list is wanted."""

    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100
    cursor: Annotated[
        str, Meta(pattern="^[A-Za-z0-9._-]{0,128}$", description="`next` of the page before.")
    ] = ""


def set_fields(body: msgspec.Struct) -> dict[str, Any]:
    """The fields of a patch that were there."""
    fields = msgspec.structs.asdict(body)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}
