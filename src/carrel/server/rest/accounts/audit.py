"""The audit over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import audit
from carrel.core.access import Permission
from carrel.core.store.record import AuditEntry as Deed
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MOST
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339


class AuditQuery(RequestModel, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100
    cursor: Annotated[
        str, Meta(pattern="^[0-9]{0,18}$", description="`next` of the page before.")
    ] = ""


class AuditEntry(ResponseModel, frozen=True):
    id: str
    at: When
    by: Annotated[
        str,
        Meta(description="The person who did it, or the key with which a service or an agent did."),
    ]
    why: str
    subjects: Annotated[list[str], Meta(description="What it changed, as `noun/id`.")]


class AuditPage(ResponseModel, frozen=True):
    items: list[AuditEntry]
    next: str | None


def entry_of(entry: Deed) -> AuditEntry:
    return AuditEntry(
        id=str(entry.id),
        at=rfc3339(entry.at),
        by=entry.author,
        why=entry.reason,
        subjects=list(entry.subjects),
    )


@endpoint(
    "GET",
    "/v1/audit",
    permission=Permission.TENANT_ADMIN,
    query=AuditQuery,
    responses={200: AuditPage},
    tag="Audit",
)
async def listing(call: Request[None, AuditQuery]) -> Response:
    """Who did what to the tenant's records, newest first."""
    before = int(call.query.cursor or 0)
    found = await audit.listing(call.ports, call.actor, before=before, limit=call.query.limit)
    return Response.json(
        AuditPage(items=[entry_of(entry) for entry in found.items], next=found.next)
    )


ENDPOINTS: Final = (listing,)
