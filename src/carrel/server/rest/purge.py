"""REST endpoint that purges one text."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.maintenance.purge import PurgeRequest, purge_text
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, Forbidden, ValidationError
from carrel.core.redaction.redactor import MAX_SECRET_BYTES, MIN_SECRET_LENGTH
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response

Count = Annotated[int, Meta(ge=0)]


class PurgeBody(RequestModel, frozen=True):
    text: Annotated[str, Meta(min_length=MIN_SECRET_LENGTH, max_length=MAX_SECRET_BYTES)]
    dry_run: bool = False
    cursor: Annotated[
        str, Meta(max_length=16_384, description="`cursor` of the previous step; empty begins.")
    ] = ""

    def __repr__(self) -> str:  # the text must never be logged
        return f"PurgeBody(dry_run={self.dry_run!r})"


class PurgeStepModel(ResponseModel, frozen=True):
    counts: Annotated[
        dict[str, Count],
        Meta(description="Changes by kind so far; with dryRun those that would be made."),
    ]
    completed: Count
    total: Annotated[Count, Meta(description="Stages of the current pass over the store.")]
    cursor: Annotated[str | None, Meta(description="Null at the end.")]


@endpoint(
    "POST",
    "/v1/purge",
    permission=Permission.TENANT_ADMIN,
    body=PurgeBody,
    responses={200: PurgeStepModel},
    refusals=(ValidationError, Forbidden, Busy, Conflict),
    tag="Tenant",
    idempotent=True,
)
async def purge(request: Request[PurgeBody, None]) -> Response:
    """Remove a text from everything that the tenant stores; one step per request.

    Repeat with the cursor until it is null; if interrupted, begin again. For persons who are owner.
    """
    body = request.body
    step = await purge_text(
        request.ports, request.actor, PurgeRequest(body.text, body.dry_run, body.cursor)
    )
    return Response.json(
        PurgeStepModel(
            counts=step.counts, completed=step.completed, total=step.total, cursor=step.cursor
        )
    )


ENDPOINTS: Final = (purge,)
