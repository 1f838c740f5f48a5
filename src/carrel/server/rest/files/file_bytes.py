"""Bytes of files: responses with the content itself, and bodies received in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from email.utils import formatdate
from typing import Final

from msgspec.structs import replace

from carrel.actions.files import files, uploads
from carrel.actions.files.file_writer import FileWriter
from carrel.actions.files.files import WriteOptions, WriteResult
from carrel.actions.files.uploads import ReceivedContent
from carrel.actions.skills.skills import find_write_problems
from carrel.core.errors import ValidationError
from carrel.core.overlay.compose import File
from carrel.core.overlay.write_condition import UNCONDITIONAL
from carrel.ports import CorruptContent, Ports
from carrel.ports.blobs import PART_BYTES, hash_content
from carrel.server.http.byte_ranges import IF_RANGE, RANGE, parse_range
from carrel.server.http.digests import format_digest, require_digests
from carrel.server.http.idempotency import IDEMPOTENCY_HEADER
from carrel.server.http.response import JSON_TYPE, HeaderPairs, Response, encode
from carrel.server.rest.files.file_collections import AnyRequest, FileCollection
from carrel.server.rest.files.file_models import (
    FileSummaryModel,
    OverlayFileModel,
    file_to_summary,
    overlay_file_to_model,
)

BYTE_HEADERS: Final = (RANGE, IF_RANGE)
BYTE_RESPONSE_HEADERS: Final = ("Accept-Ranges", "Content-Range", "Repr-Digest", "Carrel-Version")
VARY: Final = (b"vary", b"accept")
_SANDBOX: Final[HeaderPairs] = [
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"content-disposition", b"attachment"),
]
"""A file of a tenant never runs as a page of the console, whose origin it shares."""


async def bytes_response(
    request: AnyRequest, file: File, headers: HeaderPairs, *, raw: bool
) -> Response:
    """Response with the bytes of a file, or with the range that the request asks for.

    They are verified before the response begins. Raises RangeNotSatisfiable and CorruptContent.
    """
    content: bytes | None = None
    sha256, size = bytes.fromhex(file.blob.digest.removeprefix("sha256:")), file.blob.size
    if size <= PART_BYTES or not (raw or file.variables is None):
        content = await files.read_content(request.ports, file, raw=raw)
        size = len(content)
        if not (raw or file.variables is None):
            sha256 = bytes.fromhex((await hash_content(content)).removeprefix("sha256:"))
    byte_range = parse_range(request, file.etag, size)
    start, end = byte_range or (0, size)
    status = 200 if byte_range is None else 206
    response_headers = [*_file_headers(file, sha256), *headers]
    if byte_range is not None:
        content_range = b"bytes %d-%d/%d" % (start, end - 1, size)
        response_headers.append((b"content-range", content_range))
    if content is not None:
        return Response(status, content[start:end], response_headers)
    response_headers.append((b"content-length", b"%d" % (end - start)))
    source = _no_parts() if request.is_head else await _open_range(request.ports, file, start, end)
    return Response(status, b"", response_headers, source)


def _file_headers(file: File, sha256: bytes) -> HeaderPairs:
    return [
        (b"content-type", file.entry.type.encode("latin-1")),
        (b"etag", file.etag.encode()),
        (b"last-modified", formatdate(file.head.at / 1000, usegmt=True).encode()),
        (b"accept-ranges", b"bytes"),
        (b"repr-digest", format_digest(sha256)),
        (b"carrel-version", b"%d" % file.version),
        VARY,
        *_SANDBOX,
    ]


async def _no_parts() -> AsyncIterator[bytes]:
    no_parts: tuple[bytes, ...] = ()
    for part in no_parts:
        yield part


async def _open_range(ports: Ports, file: File, start: int, end: int) -> AsyncIterator[bytes]:
    """Parts of a large content, of which the first was read. Raises CorruptContent."""
    parts = ports.blobs.read_range(file.blob, start, end)
    try:
        first = await anext(parts, b"")
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path}: {problem}") from problem

    async def source() -> AsyncIterator[bytes]:
        async with aclosing(parts):
            yield first
            async for part in parts:
                yield part

    return source()


async def receive_file(
    collection: FileCollection,
    request: AnyRequest,
    options: WriteOptions,
    parts: AsyncIterator[bytes],
) -> ReceivedContent:
    """Receive the body of a write. Raises what the write raises, before the body has ended.

    With an idempotency key only the write checks the condition: it may have happened before.
    """
    if request.header(IDEMPOTENCY_HEADER) is not None:
        options = replace(options, condition=UNCONDITIONAL)
    for name in (b"content-encoding", b"content-range"):
        if request.headers.get(name, b"identity") != b"identity":
            raise ValidationError(f"{name.decode().title()} is not supported on a write")
    stack, path = await collection.load_stack(request), collection.path(request)
    writer = FileWriter(request.ports, stack, path, request.actor, options)
    declared = request.headers.get(b"content-length", b"")[:18]

    def check(sha256: bytes) -> None:
        require_digests(request.headers, sha256)

    return await uploads.receive(writer, parts, int(declared) if declared.isdigit() else 0, check)


async def put_received(
    collection: FileCollection,
    request: AnyRequest,
    options: WriteOptions,
    received: ReceivedContent,
) -> Response:
    """Write what was received; the response has no content."""
    stack, path = await collection.load_stack(request), collection.path(request)
    if received.staged is None:
        result = await files.put(
            request.ports, stack, path, received.content, request.actor, options
        )
        file, headers = result.file, write_headers(result)
    else:
        writer = FileWriter(request.ports, stack, path, request.actor, options)
        written = await uploads.put_staged(writer, received.staged)
        file = written.file
        headers = redaction_headers(written.content.replaced, written.content.warned)
    return summary_response(collection, file, headers)


def summary_response(
    collection: FileCollection, file: File, headers: HeaderPairs | None = None
) -> Response:
    """Response with a written file, without its content."""
    model: FileSummaryModel | OverlayFileModel = (
        file_to_summary(file) if collection.wire else overlay_file_to_model(file)
    )
    return Response(
        200, encode(model), [JSON_TYPE, (b"etag", file.etag.encode()), *(headers or ())]
    )


def write_headers(result: WriteResult) -> HeaderPairs:
    """Headers with what was redacted, and with what is wrong with a SKILL.md."""
    problems = find_write_problems(result.file, result.content)
    return redaction_headers(result.redacted.replaced, result.redacted.warned, problems)


def redaction_headers(
    replaced: Sequence[str], warned: Sequence[str], skill_problems: Sequence[str] = ()
) -> HeaderPairs:
    """Names of what was redacted, of what only looks like a secret, and problems of a skill."""
    headers: HeaderPairs = []
    if replaced:
        headers.append((b"carrel-redacted", ", ".join(replaced).encode("latin-1")))
    warnings = ["looks like a secret: " + ", ".join(warned)] if warned else []
    warnings += [f"invalid skill: {problem}" for problem in skill_problems]
    if warnings:
        text = "; ".join(warnings).encode("ascii", "backslashreplace")
        headers.append((b"carrel-warning", text))
    return headers
