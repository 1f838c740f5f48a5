"""Responses with one file, as JSON or as bytes."""

from __future__ import annotations

from carrel.actions.files import files
from carrel.actions.overlay.stacks import ReadableStack
from carrel.core.identifiers import Scope
from carrel.core.overlay.compose import File
from carrel.server.http.byte_ranges import wants_bytes
from carrel.server.http.not_modified import NO_CACHE, etag_matches, json_with_etag, not_modified
from carrel.server.http.response import HeaderPairs, Response, encode
from carrel.server.rest.files.file_bytes import VARY, bytes_response
from carrel.server.rest.files.file_collections import AnyRequest, FileCollection
from carrel.server.rest.files.large_file_json import PLACEHOLDER, is_large, stream_file


async def current_response(collection: FileCollection, request: AnyRequest, file: File) -> Response:
    """Response with the current version: JSON, kept encoded, or bytes."""
    raw = not collection.wire and request.query.raw
    if wants_bytes(request):
        return await bytes_response(request, file, [NO_CACHE], raw=raw)
    if is_large(file):
        return await _stream_file(collection, request, file, [NO_CACHE, VARY])
    variant = (
        collection.wire,
        raw,
        file.has_update,
        file.source_label,
        file.file_class,
        file.head.version,
    )
    responses = request.caches.responses
    key = (request.ports.store, *_scope_key(file.source), file.path.text, file.etag, *variant)
    body = responses.get(key)
    if body is None:
        content = await files.read_content(request.ports, file, raw=True)
        body = responses.put(key, collection.to_model(file, content, raw=raw))
    response = json_with_etag(body, file.etag)
    response.headers.append(VARY)
    return response


async def _stream_file(
    collection: FileCollection, request: AnyRequest, file: File, headers: HeaderPairs
) -> Response:
    """Response with a large file, which has no placeholders."""
    model = encode(collection.to_model(file, PLACEHOLDER, raw=True))
    return await stream_file(request.ports, file, model, [(b"etag", file.etag.encode()), *headers])


def _scope_key(scope: Scope) -> tuple[str, str, str]:
    """Scope as strings, which hash faster."""
    return (scope.tenant, scope.kind, scope.name)


async def version_response(
    collection: FileCollection, request: AnyRequest, readable: ReadableStack, version: int
) -> Response:
    """Response with one version, as the stack numbers it."""
    path, inherited_only = collection.path(request), readable.inherited_only
    file = await files.find_version(
        request.ports, readable.stack, path, version, inherited_only=inherited_only
    )
    if etag_matches(request, file.etag):
        return not_modified(file.etag)
    raw = not collection.wire and request.query.raw
    if wants_bytes(request):
        return await bytes_response(request, file, [], raw=raw)
    if is_large(file):
        return await _stream_file(collection, request, file, [VARY])
    content = await files.read_content(request.ports, file, raw=True)
    return Response.json(collection.to_model(file, content, raw=raw), headers={"ETag": file.etag})
