"""REST endpoints for the audit log."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import audit
from carrel.core.access import Permission
from carrel.core.store.audit_filter import END_OF_TIME, AuditFilter
from carrel.core.store.record import AuditEntry
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MAX_PAGE_ITEMS, Instant, Total, milliseconds
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339


class AuditConditions(RequestModel, frozen=True):
    """Conditions that all entries meet."""

    author: Annotated[
        str, Meta(max_length=200, description="Id of the author, or of the key they used.")
    ] = msgspec.field(default="", name="who")
    action: Annotated[str, Meta(max_length=60, description="Such as `create an agent`.")] = ""
    object: Annotated[
        str,
        Meta(max_length=1300, description="A record as `type/id`, or all records of a `type`."),
    ] = ""
    start: Annotated[Instant, Meta(description="Earliest time.")] | None = msgspec.field(
        default=None, name="from"
    )
    end: Annotated[Instant, Meta(description="Latest time, exclusive.")] | None = msgspec.field(
        default=None, name="to"
    )


class AuditQuery(AuditConditions, frozen=True):
    """Page of the audit log."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS)] = 100
    cursor: Annotated[
        str, Meta(pattern="^[A-Za-z0-9_-]{0,128}$", description="`next` of the previous page.")
    ] = ""


class ExportFormat(StrEnum):
    CSV = "csv"
    JSON = "json"


class AuditExportQuery(AuditConditions, frozen=True):
    """Format and entries of an export."""

    format: ExportFormat = ExportFormat.CSV


class AuditKeyModel(ResponseModel, frozen=True):
    """Key through which the author acted, with the name it had then."""

    id: str
    name: str


class AuditObjectModel(ResponseModel, frozen=True):
    """A record that an entry names; of a file, its agent, template or defaults."""

    type: str
    id: str
    path: Annotated[str | None, Meta(description="Path of the file; null for a record.")]
    name: Annotated[str | None, Meta(description="Current name; null without one.")]


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
    action: Annotated[str, Meta(description="What was done, without names of records.")]
    why: str
    subjects: Annotated[list[str], Meta(description="Changed records, as `type/id`.")]
    objects: list[AuditObjectModel]


class AuditPageModel(ResponseModel, frozen=True):
    items: list[AuditEntryModel]
    next: str | None
    total: Total


def audit_entry_to_model(entry: AuditEntry) -> AuditEntryModel:
    key = entry.key
    return AuditEntryModel(
        id=entry.id,
        at=rfc3339(entry.at),
        by=entry.author,
        by_name=entry.author_name,
        key=None if key is None else AuditKeyModel(id=key.id, name=key.name),
        action=entry.action,
        why=entry.reason,
        subjects=list(entry.subjects),
        objects=[_object_to_model(entry, subject) for subject in entry.subjects],
    )


def _object_to_model(entry: AuditEntry, subject: str) -> AuditObjectModel:
    record_type, id = audit.named_record(subject)
    path = subject.split("/", 3)[3] if subject.startswith("file/") else None
    name = entry.object_names.get(subject)
    return AuditObjectModel(type=record_type, id=id, path=path, name=name)


def _to_filter(query: AuditConditions) -> AuditFilter:
    return AuditFilter(
        author=query.author,
        action=query.action,
        object=query.object,
        start=milliseconds(query.start) if query.start else 0,
        end=milliseconds(query.end) if query.end else END_OF_TIME,
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
    query = request.query
    page = await audit.list_audit_entries(
        request.ports, request.actor, _to_filter(query), before=query.cursor, limit=query.limit
    )
    items = [audit_entry_to_model(entry) for entry in page.items]
    return Response.json(AuditPageModel(items=items, next=page.next, total=page.total))


@endpoint(
    "GET",
    "/v1/audit/export",
    permission=Permission.TENANT_ADMIN,
    query=AuditExportQuery,
    responses={200: frozenset({"text/csv", "application/x-ndjson"})},
    tag="Audit",
)
async def export_audit_entries(request: Request[None, AuditExportQuery]) -> Response:
    """Export audit log entries, newest first, as CSV or as one JSON object a line."""
    as_csv = request.query.format is ExportFormat.CSV
    lines = await audit.export_audit_entries(
        request.ports, request.actor, _to_filter(request.query), as_csv=as_csv
    )
    name = "audit.csv" if as_csv else "audit.jsonl"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    media_type = "text/csv; charset=utf-8" if as_csv else "application/x-ndjson"
    return Response.stream(lines, media_type, headers)


ENDPOINTS: Final = (list_audit_entries, export_audit_entries)
