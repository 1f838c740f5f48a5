"""JSON of a large file, encoded in parts so that it is never held whole."""

from __future__ import annotations

import asyncio
import codecs
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Final

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

    Content that is not UTF-8 is encoded as base64. It is read twice: first to check it, since a
    response cannot be refused once it has begun, and to know its length. Raises CorruptContent.
    """
    head, tail = encoded_model.split(_CONTENT_FIELD, 1)
    head, tail = head + b'"content":"', b'"' + tail
    try:
        text_length = await _measure(ports, file)
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path}: {problem}") from problem
    is_text = text_length is not None
    if text_length is None:
        text_length, tail = 4 * ((file.blob.size + 2) // 3), b'","encoding":"base64"' + tail[1:]

    async def source() -> AsyncIterator[bytes]:
        yield head
        async for part in _encoded_parts(
            ports, file, _PartEncoder() if is_text else _BinaryEncoder()
        ):
            yield part
        yield tail

    length_header = (b"content-length", b"%d" % (len(head) + text_length + len(tail)))
    return Response(200, b"", [JSON_TYPE, *headers, length_header], source())


async def _measure(ports: Ports, file: File) -> int | None:
    """Length of the content as JSON text, None if it is not UTF-8. Raises CorruptContent."""
    encoder, length, is_text = _PartEncoder(), 0, True
    async for part in ports.blobs.read_parts(file.blob):
        try:
            length += len(await asyncio.to_thread(encoder.encode, part)) if is_text else 0
        except UnicodeDecodeError:
            is_text = False
    return length if is_text and encoder.is_complete else None


async def _encoded_parts(
    ports: Ports, file: File, encoder: _PartEncoder | _BinaryEncoder
) -> AsyncIterator[bytes]:
    async for part in ports.blobs.read_parts(file.blob):
        yield await asyncio.to_thread(encoder.encode, part)
    yield encoder.finish()


class _BinaryEncoder:
    """Encodes parts of bytes as one base64 text."""

    def __init__(self) -> None:
        self._rest = b""

    def encode(self, part: bytes) -> bytes:
        """Return the encoded groups of three bytes; the rest belongs to the next part."""
        content = self._rest + part
        complete = len(content) // 3 * 3
        self._rest = content[complete:]
        return b64encode(content[:complete])

    def finish(self) -> bytes:
        return b64encode(self._rest)


class _PartEncoder:
    """Encodes parts of UTF-8 text as the inside of a JSON string."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def encode(self, part: bytes) -> bytes:
        """Return the encoded part; a character that it cuts belongs to the next."""
        return encode(self._decoder.decode(part))[1:-1]

    def finish(self) -> bytes:
        return b""

    @property
    def is_complete(self) -> bool:
        """Whether no character is cut at the end."""
        return not self._decoder.getstate()[0]
