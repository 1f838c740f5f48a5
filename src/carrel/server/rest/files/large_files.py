"""JSON of a large file, encoded in parts so that it is never held whole."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from typing import Final

from carrel.core.errors import Conflict
from carrel.core.overlay.compose import File
from carrel.ports import CorruptContent, Ports
from carrel.ports.blobs import PART_BYTES
from carrel.server.http.response import JSON_TYPE, HeaderPairs, Response, encode

PLACEHOLDER: Final = b"content"
"""Content of the model that `stream_file` takes."""
_CONTENT_FIELD: Final = b'"content":"content"'


def is_large(file: File) -> bool:
    """Whether the content is sent in parts; content with placeholders is rendered whole."""
    return file.blob.size > PART_BYTES and file.variables is None


async def stream_file(
    ports: Ports, file: File, encoded_model: bytes, headers: HeaderPairs
) -> Response:
    """Response with the encoded model of a file, its placeholder replaced by the content.

    The content is read twice: first to check it, since a response cannot be refused once it has
    begun, and to know its length. Raises Conflict if it is not UTF-8, and CorruptContent.
    """
    head, tail = encoded_model.split(_CONTENT_FIELD, 1)
    head, tail = head + b'"content":"', b'"' + tail
    try:
        length = len(head) + await _measure(ports, file) + len(tail)
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path}: {problem}") from problem

    async def source() -> AsyncIterator[bytes]:
        yield head
        async for part in _encoded_parts(ports, file):
            yield part
        yield tail

    length_header = (b"content-length", b"%d" % length)
    return Response(200, b"", [JSON_TYPE, *headers, length_header], source())


async def _measure(ports: Ports, file: File) -> int:
    """Length of the encoded content, all of it checked. Raises CorruptContent and Conflict."""
    encoder, length, is_text = _PartEncoder(), 0, True
    async for part in ports.blobs.read_parts(file.blob):
        try:
            length += len(await asyncio.to_thread(encoder.encode, part)) if is_text else 0
        except UnicodeDecodeError:
            is_text = False
    if not (is_text and encoder.is_complete):
        raise Conflict(f"{file.path} is not UTF-8 text")
    return length


async def _encoded_parts(ports: Ports, file: File) -> AsyncIterator[bytes]:
    encoder = _PartEncoder()
    async for part in ports.blobs.read_parts(file.blob):
        yield await asyncio.to_thread(encoder.encode, part)


class _PartEncoder:
    """Encodes parts of UTF-8 text as the inside of a JSON string."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def encode(self, part: bytes) -> bytes:
        """Return the encoded part; a character that it cuts belongs to the next."""
        return encode(self._decoder.decode(part))[1:-1]

    @property
    def is_complete(self) -> bool:
        """Whether no character is cut at the end."""
        return not self._decoder.getstate()[0]
