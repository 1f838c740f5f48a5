"""REST endpoint that counts the agents an edit of a shared file affects."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType, field

from carrel.actions.overlay import edit_impact
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Endpoint, Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_collections import FILE_COLLECTIONS, FileCollection

Count = Annotated[int, Meta(ge=0)]


class LayerClashModel(ResponseModel, frozen=True):
    """Existing path of another layer that does not allow the path to be a file."""

    layer: str
    """`agent` and its slug, `template` or `defaults`."""
    path: str


class ImpactModel(ResponseModel, frozen=True):
    """Agents affected by an edit; each is counted in one of the last three fields."""

    path: str
    file_class: FileClass = field(name="class")
    followers: Count
    """Agents whose stack contains this layer."""
    changes: Count
    """Agents that would be served the new text at once."""
    asked: Count
    """Agents for which the edit would await review."""
    shadowed: Count
    """Agents for which a nearer layer overrides the file; of agents that the caller may open."""
    clashes: list[LayerClashModel] | UnsetType = UNSET
    """What makes the path a directory, or a parent of it a file; at most 100, absent if none."""


def _impact_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}/impact",
        permission=Permission.TENANT_READ,
        responses={200: ImpactModel},
        refusals=(ValidationError, NotFound),
        **collection.endpoint_options("impact"),
    )
    async def impact(request: Request) -> Response:
        """Count the agents an edit of a file would affect. The file need not exist.

        Overrides by private agents of other people are not counted for members.
        """
        result = await edit_impact.load_impact(
            request.ports,
            request.actor,
            await collection.load_stack(request),
            collection.path(request),
        )
        return Response.json(
            ImpactModel(
                path=result.path.text,
                file_class=result.file_class,
                followers=result.followers,
                changes=result.changes,
                asked=result.reviews,
                shadowed=result.shadowed,
                clashes=[
                    LayerClashModel(layer=clash.layer, path=clash.path.text)
                    for clash in result.clashes
                ]
                or UNSET,
            )
        )

    return impact


ENDPOINTS: Final = tuple(
    _impact_endpoint(collection) for collection in FILE_COLLECTIONS if collection.admin
)
