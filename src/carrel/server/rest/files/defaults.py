"""REST endpoints for the packaged default files and their updates."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.overlay import default_files
from carrel.actions.overlay.default_files import DefaultsStatus
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.default_files import DefaultFileState
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response

_TAG: Final = "Defaults"
_Paths = Annotated[tuple[Annotated[str, Meta(max_length=1024)], ...], Meta(max_length=1000)]


class DefaultFileModel(ResponseModel, frozen=True):
    path: str
    state: Annotated[
        DefaultFileState,
        Meta(
            description="`current`; `new` or `behind`: updated by the next update; `edited` or"
            " `deleted` in this tenant: kept; `retired`: no longer packaged."
        ),
    ]
    offered: Annotated[bool, Meta(description="A newer version is available to take or dismiss.")]


class DefaultsStatusModel(ResponseModel, frozen=True):
    packaged: Annotated[int, Meta(description="Version packaged with this server.")]
    seeded: Annotated[int, Meta(description="Version merged last; 0 if none.")]
    files: list[DefaultFileModel]


class UpdateDefaultsBody(RequestModel, frozen=True):
    take: _Paths = ()
    """Offered files that replace the tenant's."""
    keep: _Paths = ()
    """Offered files to dismiss until a newer version."""


def status_to_model(status: DefaultsStatus) -> DefaultsStatusModel:
    files = [
        DefaultFileModel(path=path.text, state=state, offered=path in status.plan.offers)
        for path, state in status.plan.states.items()
    ]
    return DefaultsStatusModel(packaged=status.packaged, seeded=status.seeded.version, files=files)


@endpoint(
    "GET",
    "/v1/defaults",
    permission=Permission.TENANT_READ,
    responses={200: DefaultsStatusModel},
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Compare the tenant's default files with the packaged ones."""
    return Response.json(
        status_to_model(await default_files.load_status(request.ports, request.actor))
    )


async def _rebuild_update(
    request: Request[UpdateDefaultsBody], versions: tuple[int, ...] = ()
) -> Response:
    return Response.json(
        status_to_model(await default_files.load_status(request.ports, request.actor))
    )


@endpoint(
    "POST",
    "/v1/defaults/update",
    permission=Permission.TENANT_ADMIN,
    body=UpdateDefaultsBody,
    responses={200: DefaultsStatusModel},
    refusals=(ValidationError, NotFound, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_update,
)
async def update(request: Request[UpdateDefaultsBody]) -> Response:
    """Update unedited default files, and take or dismiss offered ones."""
    take, keep = map(Path, request.body.take), map(Path, request.body.keep)
    await default_files.update(
        request.ports, request.actor, tuple(take), tuple(keep), request.idempotency_key
    )
    return await _rebuild_update(request)


ENDPOINTS: Final = (get, update)
