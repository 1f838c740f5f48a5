"""The packaged default files over HTTP: how a tenant's stand to them, and bringing them up."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.overlay import default_files
from carrel.actions.overlay.default_files import DefaultsStatus as Standing
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.default_files import DefaultFileState
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response

_TAG: Final = "Defaults"
_Paths = Annotated[tuple[Annotated[str, Meta(max_length=1024)], ...], Meta(max_length=1000)]


class DefaultFile(ResponseModel, frozen=True):
    path: str
    state: Annotated[
        DefaultFileState,
        Meta(
            description="`current`; `new` or `behind`, and follows with the next update; `edited`"
            " or `deleted` here, and stays so; `retired`, no longer packaged."
        ),
    ]
    offered: Annotated[bool, Meta(description="There is something newer to take or to keep away.")]


class DefaultsStatus(ResponseModel, frozen=True):
    packaged: Annotated[int, Meta(description="The version that this Carrel comes with.")]
    seeded: Annotated[int, Meta(description="The version that was merged last, 0 before any.")]
    files: list[DefaultFile]


class DefaultsUpdate(RequestModel, frozen=True):
    take: _Paths = ()
    """Offered files that replace what is here."""
    keep: _Paths = ()
    """Offered files to hear no more of until there is something newer."""


def shown(standing: Standing) -> DefaultsStatus:
    files = [
        DefaultFile(path=path.text, state=state, offered=path in standing.plan.offers)
        for path, state in standing.plan.states.items()
    ]
    return DefaultsStatus(packaged=standing.packaged, seeded=standing.seeded.version, files=files)


@endpoint(
    "GET",
    "/v1/defaults",
    permission=Permission.TENANT_READ,
    responses={200: DefaultsStatus},
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """How the tenant's default files stand to those that Carrel comes with."""
    return Response.json(shown(await default_files.status(call.ports, call.actor)))


@endpoint(
    "POST",
    "/v1/defaults/update",
    permission=Permission.TENANT_ADMIN,
    body=DefaultsUpdate,
    responses={200: DefaultsStatus},
    refusals=(ValidationError, NotFound, Busy),
    tag=_TAG,
    idempotent=True,
)
async def update(call: Request[DefaultsUpdate]) -> Response:
    """Let the files follow that nobody has edited, and take what is named of what is offered."""
    take, keep = map(Path, call.body.take), map(Path, call.body.keep)
    await default_files.update(call.ports, call.actor, tuple(take), tuple(keep), call.receipt)
    return Response.json(shown(await default_files.status(call.ports, call.actor)))


ENDPOINTS: Final = (get, update)
