"""REST endpoints for files: RFC 0059, and the same operations on other stacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from carrel.actions.files import files
from carrel.actions.files.files import FileContents, WorkspaceView, WriteOptions, WriteResult
from carrel.actions.files.uploads import ReceivedContent
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    RangeNotSatisfiable,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path, ScopeKind, Stack, normalize_prefix
from carrel.core.overlay.compose import File
from carrel.core.overlay.write_condition import parse_condition
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES
from carrel.server.http.digests import REPR_DIGEST, require_digests_of
from carrel.server.http.endpoint import (
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    Endpoint,
    RequestHeader,
    ResponseRebuilder,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches, json_with_etag, not_modified
from carrel.server.http.response import JSON_TYPE, Response, encode
from carrel.server.http.response_cache import SharedBody, SupersededByWrite, raise_if_superseded
from carrel.server.rest.files.file_bytes import (
    BYTE_HEADERS,
    BYTE_RESPONSE_HEADERS,
    put_received,
    receive_file,
    summary_response,
    write_headers,
)
from carrel.server.rest.files.file_collections import (
    FILE_COLLECTIONS,
    AnyRequest,
    FileCollection,
)
from carrel.server.rest.files.file_models import (
    DirectoryListModel,
    FileBody,
    FileListModel,
    FileListQuery,
    FileQuery,
    OverlayFileBody,
    OverlayFileListModel,
    OverlayFileModel,
    UploadQuery,
    WireFileListQuery,
    WireFileQuery,
    WireUploadQuery,
    WorkspaceFileModel,
    WrittenFileModel,
    decode_body,
    directory_entry_to_model,
    file_to_summary,
    overlay_file_to_model,
)
from carrel.server.rest.files.file_responses import current_response, version_response
from carrel.server.rest.files.listing_rows import encode_listing
from carrel.server.rest.files.listing_templates import load_template

RUN_HEADER: Final = RequestHeader("Carrel-Run", "Run that writes; the event is added to its log.")
REASON_HEADER: Final = RequestHeader("Carrel-Reason", "Reason, stored in the history.")
_NO_UPLOAD_QUERY: Final = UploadQuery()
MAX_BODY_BYTES: Final = 6 * 4 * 2**20 + 2**16


def write_options(
    request: AnyRequest, type: str | None = None, *, accept_template_update: bool = False
) -> WriteOptions:
    return WriteOptions(
        condition=parse_condition(request.header(b"if-match"), request.header(b"if-none-match")),
        type=type,
        reason=parse_reason(request),
        run=request.header(b"carrel-run"),
        idempotency_key=request.idempotency_key,
        accept_template_update=accept_template_update,
    )


def parse_reason(request: AnyRequest) -> str:
    header_value = request.headers.get(b"carrel-reason")
    if header_value is None:
        return ""
    try:
        reason = header_value.decode()
    except UnicodeDecodeError:
        raise ValidationError("Carrel-Reason is not UTF-8") from None
    if len(reason) > 500 or not reason.isprintable():
        raise ValidationError("Carrel-Reason must be one line of at most 500 characters")
    return reason


def _list_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root,
        query=WireFileListQuery if collection.wire else FileListQuery,
        permission=Permission.WORKSPACE_READ,
        allow_unknown_query=collection.wire,
        responses={
            200: (FileListModel if collection.wire else OverlayFileListModel, DirectoryListModel),
            304: None,
        },
        refusals=() if collection.wire else (NotFound,),
        headers=(IF_NONE_MATCH,),
        response_headers=("ETag", "Carrel-Agent") if collection.name == "agents" else ("ETag",),
        **collection.endpoint_options("list"),
    )
    async def list_files(request: AnyRequest) -> Response:
        """List files, with content only if requested.

        With `depth=1`, lists the files and directories that are directly in one.
        """
        readable = await collection.load_readable_stack(request)
        stack, inherited_only = readable.stack, readable.inherited_only
        include_content = not collection.wire and request.query.content
        prefix = normalize_prefix(request.query.prefix)
        variant = _listing_variant(collection, request)
        etag = await files.load_etag(
            request.ports, stack, prefix, variant, inherited_only=inherited_only
        )
        if etag_matches(request, etag):
            return _with_agent_header(not_modified(etag), stack)

        async def build() -> FileListModel | OverlayFileListModel | DirectoryListModel | SharedBody:
            view = await files.load_view(
                request.ports, stack, prefix, inherited_only=inherited_only
            )
            result = await _build_listing(collection, request, view, include_content)
            raise_if_superseded(etag, view.etag(prefix, variant), result)
            return result

        responses, scope_key = request.caches.responses, (request.ports.store, stack[0].tenant)
        try:
            body = await responses.get_or_create((*scope_key, etag), build)
        except SupersededByWrite as superseded:
            etag = superseded.etag
            body = responses.encode_and_store((*scope_key, etag), superseded.value)
        return _with_agent_header(json_with_etag(body, etag), stack)

    return list_files


def _require_one_view(collection: FileCollection, request: AnyRequest) -> None:
    """Raises ValidationError."""
    if not collection.wire and request.query.last and request.query.depth:
        raise ValidationError(
            "last lists files, and depth those of one directory; give one of them"
        )


def _listing_variant(collection: FileCollection, request: AnyRequest) -> str:
    """Part of the ETag of a listing that tells its representations apart.

    Raises ValidationError for parameters that exclude each other.
    """
    query = request.query
    if query.depth is not None:
        if not collection.wire and query.last is not None:
            raise ValidationError("depth and last exclude each other")
        return f"depth: {query.depth} {collection.wire}"
    if collection.wire:
        return "wire"
    last = f" last: {query.last}" if query.last else ""
    return f"content: {query.content and ('raw' if query.raw else 1)}{last}"


def _with_agent_header(response: Response, stack: Stack) -> Response:
    """Add the agent's id: slugs may be reassigned."""
    if stack[0].kind is ScopeKind.AGENT:
        response.headers.append((b"carrel-agent", stack[0].name.encode("latin-1")))
    return response


async def _build_listing(
    collection: FileCollection, request: AnyRequest, view: WorkspaceView, include_content: bool
) -> FileListModel | OverlayFileListModel | DirectoryListModel | SharedBody:
    if request.query.depth is not None:
        entries = view.list_directory(normalize_prefix(request.query.prefix))
        visible = (entry for entry in entries if not collection.wire or Path(entry.path).fits_wire)
        return DirectoryListModel(files=[directory_entry_to_model(entry) for entry in visible])
    last = None if collection.wire else request.query.last
    if include_content and not (request.query.raw or request.query.prefix or last):
        shared_view = view.inherited_files
        if shared_view and (
            template := await load_template(request.caches.parts, request.ports, shared_view.files)
        ):
            return template.fill(shared_view.variables)
    workspace = view.workspace if last is None else view.workspace.last_files(last)
    visible_files = workspace.files.values()
    if collection.wire:
        return FileListModel(
            files=[file_to_summary(file) for file in visible_files if file.path.fits_wire]
        )
    if not include_content:
        return OverlayFileListModel(files=[overlay_file_to_model(file) for file in visible_files])
    contents = await files.read_contents(request.ports, workspace, raw=True)
    if not contents.failed:
        rows = ((file, contents.contents[path]) for path, file in workspace.files.items())
        parts, store = request.caches.parts, request.ports.store
        return encode_listing(parts, store, rows, raw=request.query.raw)
    return OverlayFileListModel(
        files=[file_with_content(file, contents, request.query.raw) for file in visible_files]
    )


def file_with_content(file: File, contents: FileContents, raw: bool) -> OverlayFileModel:
    """Model with content, if it can be read."""
    if file.path in contents.failed:
        return overlay_file_to_model(file, error=contents.failed[file.path])
    return overlay_file_to_model(file, contents.contents[file.path], raw=raw)


def _get_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}",
        query=WireFileQuery if collection.wire else FileQuery,
        permission=Permission.WORKSPACE_READ,
        allow_unknown_query=collection.wire,
        responses={
            200: WorkspaceFileModel if collection.wire else OverlayFileModel,
            206: None,
            304: None,
        },
        byte_responses=frozenset({200, 206}),
        refusals=(ValidationError, NotFound, Conflict, RangeNotSatisfiable),
        headers=(IF_NONE_MATCH, *BYTE_HEADERS),
        response_headers=("ETag", *BYTE_RESPONSE_HEADERS),
        **collection.endpoint_options("get"),
    )
    async def get(request: AnyRequest) -> Response:
        """Get a file, at its current or an earlier version.

        As JSON, or with `Accept: application/octet-stream` as bytes of its own content type.
        """
        readable, path = await collection.load_readable_stack(request), collection.path(request)
        if request.query.version is not None:
            return await version_response(collection, request, readable, request.query.version)
        file = await files.get_file(
            request.ports, readable.stack, path, inherited_only=readable.inherited_only
        )
        if etag_matches(request, file.etag):
            return not_modified(file.etag)
        return await current_response(collection, request, file)

    return get


def rebuild_write(collection: FileCollection) -> ResponseRebuilder:
    """Response with the file that a committed request wrote."""

    async def rebuild(request: AnyRequest, versions: tuple[int, ...]) -> Response:
        stack, path = await collection.load_stack(request), collection.path(request)
        file = await files.find_written(request.ports, stack, path, versions[0])
        if isinstance(request.body, ReceivedContent):
            return summary_response(collection, file)
        content = await files.read_content(request.ports, file, raw=True)
        model = collection.to_model(file, content, raw=True)
        return Response.json(model, headers={"ETag": file.etag})

    return rebuild


def _put_endpoint(collection: FileCollection) -> Endpoint:
    async def receive(request: AnyRequest, parts: AsyncIterator[bytes]) -> ReceivedContent:
        return await receive_file(collection, request, _byte_options(collection, request), parts)

    @endpoint(
        "PUT",
        collection.root + "/{path...}",
        query=WireUploadQuery if collection.wire else UploadQuery,
        receive_bytes=receive,
        body=FileBody if collection.wire else OverlayFileBody,
        permission=collection.write_permission,
        responses={200: WrittenFileModel if collection.wire else OverlayFileModel},
        refusals=(
            ValidationError,
            Forbidden,
            NotFound,
            WorkspaceConflict,
            WorkspaceTooLarge,
            Conflict,
            Busy,
        ),
        headers=(IF_MATCH, IF_ABSENT, RUN_HEADER, REASON_HEADER, REPR_DIGEST),
        response_headers=("ETag", "Carrel-Warning", "Carrel-Redacted"),
        allow_unknown_query=collection.wire,
        idempotent=True,
        rebuild=rebuild_write(collection),
        max_body=MAX_BODY_BYTES,
        **collection.endpoint_options("put"),
    )
    async def put(request: AnyRequest) -> Response:
        """Create or replace a file atomically.

        A body of any type but JSON is the content itself, streamed; its type becomes that of the
        file, and the response has no content.
        """
        if isinstance(request.body, ReceivedContent):
            options = _byte_options(collection, request)
            return await put_received(collection, request, options, request.body)
        return await _put_json(collection, request)

    return put


def _byte_options(collection: FileCollection, request: AnyRequest) -> WriteOptions:
    query = request.query
    type = query.content_type or request.header(b"content-type")
    accepted = not collection.wire and query.accept_template_update
    return write_options(request, type, accept_template_update=accepted)


async def _put_json(collection: FileCollection, request: AnyRequest) -> Response:
    if not collection.wire and request.query != _NO_UPLOAD_QUERY:
        raise ValidationError("contentType and acceptTemplateUpdate belong into a JSON body")
    require_digests_of(request.headers, request.raw_body)
    stack, path = await collection.load_stack(request), collection.path(request)
    content = await _decode_body(request.body)
    accepted = not collection.wire and request.body.accept_template_update
    options = write_options(request, request.body.content_type, accept_template_update=accepted)
    result = await files.put(request.ports, stack, path, content, request.actor, options)
    return write_response(collection, result)


async def _decode_body(body: FileBody | OverlayFileBody) -> bytes:
    if len(body.content) <= THREAD_THRESHOLD_BYTES:
        return decode_body(body)
    return await asyncio.to_thread(decode_body, body)


def write_response(collection: FileCollection, result: WriteResult) -> Response:
    warnings = write_headers(result)
    headers = [JSON_TYPE, (b"etag", result.file.etag.encode()), *warnings]
    return Response(
        200, encode(collection.to_model(result.file, result.content, raw=True)), headers
    )


def _delete_endpoint(collection: FileCollection) -> Endpoint:
    async def rebuild(request: AnyRequest, versions: tuple[int, ...]) -> Response:
        return Response.empty(204)

    @endpoint(
        "DELETE",
        collection.root + "/{path...}",
        permission=collection.write_permission,
        responses={204: None},
        refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Conflict, Busy),
        headers=(IF_MATCH, IF_ABSENT, RUN_HEADER, REASON_HEADER),
        allow_unknown_query=collection.wire,
        idempotent=True,
        rebuild=rebuild,
        **collection.endpoint_options("delete"),
    )
    async def delete(request: AnyRequest) -> Response:
        """Delete a file. In a stack, the inherited file applies again."""
        stack, path = await collection.load_stack(request), collection.path(request)
        await files.delete(request.ports, stack, path, request.actor, write_options(request))
        return Response.empty(204)

    return delete


ENDPOINTS: Final = tuple(
    make(place)
    for place in FILE_COLLECTIONS
    for make in (_list_endpoint, _get_endpoint, _put_endpoint, _delete_endpoint)
)
