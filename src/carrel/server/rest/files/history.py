"""The history of a file over HTTP: versions, differences, explanations, going back."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from carrel.actions.files import files
from carrel.actions.files import history as files_history
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.store.tree import Version
from carrel.server.http.endpoint import IF_MATCH, Endpoint, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, OverlayFile, When, rfc3339
from carrel.server.rest.files.files import (
    FILE_COLLECTIONS,
    RUN,
    Asked,
    FileCollection,
    write_options,
    write_response,
)


class VersionRow(ResponseModel, frozen=True):
    version: Number
    updated_at: When
    author: str
    reason: str
    run_id: str | None
    deleted: bool
    size: int | None
    sha256: str | None
    content_type: str | None


class Versions(ResponseModel, frozen=True):
    items: list[VersionRow]
    next: str | None


class HistoryQuery(RequestModel, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    cursor: Number | None = None


class DiffQuery(RequestModel, frozen=True):
    from_: Annotated[int, msgspec.Meta(ge=0)] | None = msgspec.field(default=None, name="from")
    to: Annotated[int, msgspec.Meta(ge=0)] | None = None


class LayerEntry(ResponseModel, frozen=True):
    kind: str
    name: str
    version: Number | None
    sha256: str | None
    base_sha256: str | None


class Explanation(ResponseModel, frozen=True):
    path: str
    layers: list[LayerEntry]
    source: str | None
    why: str


class Restore(RequestModel, frozen=True):
    version: Number
    accept_template_update: bool = False
    """Needed to override a pinned file of an agent."""


def version_row(version: Version) -> VersionRow:
    head, entry = version.head, version.head.entry
    return VersionRow(
        version=head.version,
        updated_at=rfc3339(head.at),
        author=version.by,
        reason=version.why,
        run_id=version.run,
        deleted=entry is None,
        size=entry.blob.size if entry else None,
        sha256=_hex(entry.blob.digest) if entry else None,
        content_type=entry.type if entry else None,
    )


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _history(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}/history",
        query=HistoryQuery,
        permission=Permission.WORKSPACE_READ,
        responses={200: Versions},
        refusals=(ValidationError, NotFound),
        **place.facts("history"),
    )
    async def history(call: Asked) -> Response:
        """List the versions of a file, newest first, tombstones included."""
        stack, path, query = await place.stack(call), place.path(call), call.query
        found = await files_history.page(
            call.ports, stack, path, before=query.cursor, limit=query.limit
        )
        return Response.json(Versions(items=[version_row(v) for v in found.items], next=found.next))

    return history


def _diff(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}/diff",
        query=DiffQuery,
        permission=Permission.WORKSPACE_READ,
        responses={200: "text/x-diff"},
        refusals=(ValidationError, NotFound),
        **place.facts("diff"),
    )
    async def diff(call: Asked) -> Response:
        """Compare two versions of a file, by default the newest with the one before."""
        stack, path = await place.stack(call), place.path(call)
        text = await files_history.diff(call.ports, stack, path, call.query.from_, call.query.to)
        return Response.content(text.encode(), "text/x-diff; charset=utf-8")

    return diff


def _explain(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}/explain",
        permission=Permission.WORKSPACE_READ,
        responses={200: Explanation},
        refusals=(ValidationError, NotFound),
        **place.facts("explain"),
    )
    async def explain(call: Asked) -> Response:
        """Show every layer's say about a path, and why the winner won."""
        stack, path = await place.stack(call), place.path(call)
        found = await files_history.explain(call.ports, stack, path)
        winner = found.winner
        source = (winner.origin or winner.source.kind) if winner else None
        layers = [_said(said) for said in found.layers]
        return Response.json(
            Explanation(path=path.text, layers=layers, source=source, why=found.why)
        )

    return explain


def _said(said: files_history.LayerEntry) -> LayerEntry:
    entry = said.head.entry if said.head else None
    return LayerEntry(
        kind=said.scope.kind,
        name=said.scope.name,
        version=said.head.version if said.head else None,
        sha256=_hex(entry.blob.digest) if entry else None,
        base_sha256=_hex(entry.base.digest) if entry and entry.base else None,
    )


def _restore(place: FileCollection) -> Endpoint:
    @endpoint(
        "POST",
        place.root + "/{path...}/restore",
        body=Restore,
        permission=place.writing,
        responses={200: OverlayFile},
        refusals=(
            ValidationError,
            Forbidden,
            NotFound,
            WorkspaceConflict,
            WorkspaceTooLarge,
            Conflict,
            Busy,
        ),
        headers=(IF_MATCH, RUN),
        response_headers=("ETag",),
        idempotent=True,
        **place.facts("restore"),
    )
    async def restore(call: Asked) -> Response:
        """Make an earlier version the newest again."""
        stack, path = await place.stack(call), place.path(call)
        number = call.body.version
        intent = write_options(call, accepted=call.body.accept_template_update)
        written = await files.restore(call.ports, stack, path, number, call.actor, intent)
        return write_response(place, written)

    return restore


ENDPOINTS: Final = tuple(
    make(place)
    for place in FILE_COLLECTIONS
    if not place.wire
    for make in (_history, _diff, _explain, _restore)
)
