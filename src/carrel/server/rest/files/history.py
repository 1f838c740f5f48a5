"""REST endpoints for file history: versions, diff, explanation and restore."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from carrel.actions.files import files, version_redaction
from carrel.actions.files import history as files_history
from carrel.actions.overlay.stack_versions import StackVersion
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
from carrel.core.store.entry import TransferKind
from carrel.server.http.endpoint import IF_MATCH, Endpoint, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_collections import FILE_COLLECTIONS, AnyRequest, FileCollection
from carrel.server.rest.files.file_models import OverlayFileModel, PositiveInt, Rfc3339, rfc3339
from carrel.server.rest.files.files import (
    RUN_HEADER,
    rebuild_write,
    write_options,
    write_response,
)

_CURSOR: Final = "^([0-9]{1,3}\\.)?[1-9][0-9]{0,17}$"


class VersionSourceModel(ResponseModel, frozen=True):
    """Version that was moved or copied."""

    kind: TransferKind
    path: str
    version: PositiveInt


class VersionModel(ResponseModel, frozen=True):
    version: PositiveInt
    path: str
    """Path that the file had."""
    file_id: str | None
    """Stays the same when the file is moved; null for a deletion."""
    source: VersionSourceModel | None
    """What was moved or copied here with this version."""
    layer: str
    """Kind of the layer that has this version."""
    updated_at: Rfc3339
    author: str
    reason: str
    run_id: str | None
    deleted: bool
    redacted: bool
    """Whether its content was removed; it cannot be read."""
    size: int | None
    sha256: str | None
    content_type: str | None


class VersionPageModel(ResponseModel, frozen=True):
    items: list[VersionModel]
    next: str | None


class FileHistoryQuery(RequestModel, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    cursor: Annotated[str, msgspec.Meta(pattern=_CURSOR, max_length=30)] | None = None
    """`next` of the page before, or a version: only earlier ones are listed."""


class FileDiffQuery(RequestModel, frozen=True):
    from_: Annotated[int, msgspec.Meta(ge=0)] | None = msgspec.field(default=None, name="from")
    to: Annotated[int, msgspec.Meta(ge=0)] | None = None


class LayerEntryModel(ResponseModel, frozen=True):
    kind: str
    name: str
    version: PositiveInt | None
    sha256: str | None
    base_sha256: str | None


class ExplanationModel(ResponseModel, frozen=True):
    path: str
    layers: list[LayerEntryModel]
    source: str | None
    why: str


class RedactVersionBody(RequestModel, frozen=True):
    version: PositiveInt


class RestoreFileBody(RequestModel, frozen=True):
    version: PositiveInt
    accept_template_update: bool = False
    """Required to override a pinned file of an agent."""


def version_to_model(version: StackVersion) -> VersionModel:
    row, head, entry = version.row, version.row.head, version.row.head.entry
    source = row.source
    return VersionModel(
        version=version.number,
        path=head.path.text,
        file_id=version.file_id,
        source=None
        if source is None
        else VersionSourceModel(kind=source.kind, path=source.path, version=source.version),
        layer=version.layer.kind,
        updated_at=rfc3339(head.at),
        author=row.author,
        reason=row.reason,
        run_id=row.run,
        deleted=entry is None,
        redacted=row.redacted,
        size=entry.blob.size if entry else None,
        sha256=_hex_digest(entry.blob.digest) if entry else None,
        content_type=entry.type if entry else None,
    )


def _hex_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _history_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}/history",
        query=FileHistoryQuery,
        permission=Permission.WORKSPACE_READ,
        responses={200: VersionPageModel},
        refusals=(ValidationError, NotFound),
        **collection.endpoint_options("history"),
    )
    async def history(request: AnyRequest) -> Response:
        """List versions of a file, newest first, including deletions.

        Those of a moved file continue with the versions at its earlier paths.
        """
        stack, path, query = (
            await collection.load_stack(request),
            collection.path(request),
            request.query,
        )
        page = await files_history.follow_versions(
            request.ports, stack, path, cursor=query.cursor, limit=query.limit
        )
        return Response.json(
            VersionPageModel(
                items=[version_to_model(version) for version in page.items], next=page.next
            )
        )

    return history


def _diff_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}/diff",
        query=FileDiffQuery,
        permission=Permission.WORKSPACE_READ,
        responses={200: "text/x-diff"},
        refusals=(ValidationError, NotFound),
        **collection.endpoint_options("diff"),
    )
    async def diff(request: AnyRequest) -> Response:
        """Compare two versions of a file; by default the newest with the previous."""
        stack, path = await collection.load_stack(request), collection.path(request)
        text = await files_history.diff(
            request.ports, stack, path, request.query.from_, request.query.to
        )
        return Response.content(text.encode(), "text/x-diff; charset=utf-8")

    return diff


def _explain_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}/explain",
        permission=Permission.WORKSPACE_READ,
        responses={200: ExplanationModel},
        refusals=(ValidationError, NotFound),
        **collection.endpoint_options("explain"),
    )
    async def explain(request: AnyRequest) -> Response:
        """Show each layer's entry for a path, and why one wins."""
        stack, path = await collection.load_stack(request), collection.path(request)
        result = await files_history.explain(request.ports, stack, path)
        winner = result.winner
        source = (winner.source_label or winner.source.kind) if winner else None
        layers = [_layer_to_model(layer) for layer in result.layers]
        return Response.json(
            ExplanationModel(path=path.text, layers=layers, source=source, why=result.reason)
        )

    return explain


def _layer_to_model(layer: files_history.LayerEntry) -> LayerEntryModel:
    entry = layer.head.entry if layer.head else None
    return LayerEntryModel(
        kind=layer.scope.kind,
        name=layer.scope.name,
        version=layer.head.stack_version if layer.head else None,
        sha256=_hex_digest(entry.blob.digest) if entry else None,
        base_sha256=_hex_digest(entry.base.digest) if entry and entry.base else None,
    )


def _restore_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "POST",
        collection.root + "/{path...}/restore",
        body=RestoreFileBody,
        permission=collection.write_permission,
        responses={200: OverlayFileModel},
        refusals=(
            ValidationError,
            Forbidden,
            NotFound,
            WorkspaceConflict,
            WorkspaceTooLarge,
            Conflict,
            Busy,
        ),
        headers=(IF_MATCH, RUN_HEADER),
        response_headers=("ETag",),
        idempotent=True,
        rebuild=rebuild_write(collection),
        **collection.endpoint_options("restore"),
    )
    async def restore(request: AnyRequest) -> Response:
        """Restore an earlier version as the newest. Also requires `workspace:read`."""
        stack, path = await collection.load_stack(request), collection.path(request)
        version = request.body.version
        options = write_options(request, accept_template_update=request.body.accept_template_update)
        result = await files.restore(request.ports, stack, path, version, request.actor, options)
        return write_response(collection, result)

    return restore


def _redact_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "POST",
        collection.root + "/{path...}/redact",
        body=RedactVersionBody,
        permission=Permission.TENANT_ADMIN,
        responses={204: None},
        refusals=(ValidationError, Forbidden, NotFound, Busy, Conflict),
        idempotent=True,
        **collection.endpoint_options("redact"),
    )
    async def redact(request: AnyRequest) -> Response:
        """Remove the content of one version; its number, author and time stay.

        A current version is replaced by a new one first, whose text is `[REDACTED]`. Runs read that
        text instead. Cannot be undone.
        """
        stack, path = await collection.load_stack(request), collection.path(request)
        await version_redaction.redact_version(
            request.ports, request.actor, stack, path, request.body.version
        )
        return Response.empty(204)

    return redact


ENDPOINTS: Final = tuple(
    make(collection)
    for collection in FILE_COLLECTIONS
    if not collection.wire
    for make in (
        _history_endpoint,
        _diff_endpoint,
        _explain_endpoint,
        _restore_endpoint,
        _redact_endpoint,
    )
)
