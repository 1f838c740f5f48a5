"""REST endpoint for the audit log."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import audit
from carrel.core.access import Permission
from carrel.core.store.record import AuditEntry
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MAX_PAGE_ITEMS
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339


class AuditQuery(RequestModel, frozen=True):
    """Page of the audit log."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS)] = 100
    cursor: Annotated[
        str, Meta(pattern="^[A-Za-z0-9_-]{0,128}$", description="`next` of the previous page.")
    ] = ""


class AuditKeyModel(ResponseModel, frozen=True):
    """Key through which the author acted, with the name it had then."""

    id: str
    name: str


class AuditEntryModel(ResponseModel, frozen=True):
    """One audit log entry."""

    id: str
    at: Rfc3339
    by: Annotated[
        str,
        Meta(description="Author: a person, or the key of a service or agent."),
    ]
    by_name: Annotated[
        str | None, Meta(description="Name of the author; null for the server, and once deleted.")
    ]
    key: AuditKeyModel | None
    why: str
    subjects: Annotated[list[str], Meta(description="Changed records, as `type/id`.")]


class AuditPageModel(ResponseModel, frozen=True):
    items: list[AuditEntryModel]
    next: str | None


def audit_entry_to_model(entry: AuditEntry) -> AuditEntryModel:
    key = entry.key
    return AuditEntryModel(
        id=entry.id,
        at=rfc3339(entry.at),
        by=entry.author,
        by_name=entry.author_name,
        key=None if key is None else AuditKeyModel(id=key.id, name=key.name),
        why=entry.reason,
        subjects=list(entry.subjects),
    )


@endpoint(
    "GET",
    "/v1/audit",
    permission=Permission.TENANT_ADMIN,
    query=AuditQuery,
    responses={200: AuditPageModel},
    tag="Audit",
)
async def list_audit_entries(request: Request[None, AuditQuery]) -> Response:
    """List audit log entries, newest first."""
    page = await audit.list_audit_entries(
        request.ports, request.actor, before=request.query.cursor, limit=request.query.limit
    )
    return Response.json(
        AuditPageModel(items=[audit_entry_to_model(entry) for entry in page.items], next=page.next)
    )


ENDPOINTS: Final = (list_audit_entries,)
