"""What an edit of a shared file would do, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.overlay import edit_impact
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Endpoint, Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.files import FILE_COLLECTIONS, FileCollection

Many = Annotated[int, Meta(ge=0)]


class Impact(ResponseModel, frozen=True):
    """How many agents an edit would reach: each follower is one of the last three."""

    path: str
    file_class: FileClass = field(name="class")
    followers: Many
    """Agents that have this layer beneath them."""
    changes: Many
    """Those who would be served another text at once."""
    asked: Many
    """Those for whom it would wait for a review."""
    shadowed: Many
    """Those for whom a nearer layer decides."""


def _impact(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}/impact",
        permission=Permission.TENANT_READ,
        responses={200: Impact},
        refusals=(ValidationError, NotFound),
        **place.facts("impact"),
    )
    async def impact(call: Request) -> Response:
        """Count the agents that an edit of a file would reach, whether it is there yet or not."""
        found = await edit_impact.impact(call.ports, await place.stack(call), place.path(call))
        return Response.json(
            Impact(
                path=found.path.text,
                file_class=found.file_class,
                followers=found.followers,
                changes=found.changes,
                asked=found.asked,
                shadowed=found.shadowed,
            )
        )

    return impact


ENDPOINTS: Final = tuple(_impact(place) for place in FILE_COLLECTIONS if place.admin)
