"""What an edit of a shared file would do, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.overlay import edit_impact as impacts
from carrel.core.access import Permission
from carrel.core.errors import Malformed, Missing
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Call, Endpoint, Sent, endpoint
from carrel.server.http.response import Answer
from carrel.server.rest.files.files import PLACES, Place

Many = Annotated[int, Meta(ge=0)]


class Impact(Sent, frozen=True):
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


def _impact(place: Place) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}/impact",
        permission=Permission.TENANT_READ,
        answers={200: Impact},
        refuses=(Malformed, Missing),
        **place.facts("impact"),
    )
    async def impact(call: Call) -> Answer:
        """Count the agents that an edit of a file would reach, whether it is there yet or not."""
        found = await impacts.impact(call.world, await place.stack(call), place.path(call))
        return Answer.json(
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


ENDPOINTS: Final = tuple(_impact(place) for place in PLACES if place.admin)
