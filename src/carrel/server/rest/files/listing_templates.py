"""A listing with holes, filled in for each agent that differs from others only by its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import contents_of
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.overlay.agent_files import is_verbatim, rendered_etag
from carrel.core.overlay.compose import File
from carrel.core.overlay.placeholders import PlaceholderValues, TemplatePart, joined, split
from carrel.ports import CorruptContent, Ports
from carrel.server.http.response import encode
from carrel.server.rest.files.file_models import layered_file
from carrel.server.rest.files.response_cache import SharedBody

_MOST: Final = 64
_LARGEST: Final = 256 * 2**10
"""Bytes of all contents together up to which it is worth its memory."""

_HOLE: Final = "\0"
_QUOTED: Final = encode(_HOLE)
_AT: Final = b'"etag":' + _QUOTED


class _RenderedPart(Struct, frozen=True):
    """A content with placeholders: the digest of what is served of it, and that."""

    pieces: tuple[TemplatePart, ...]

    def filled(self, variables: PlaceholderValues) -> bytes:
        shown = joined(self.pieces, variables)
        told = digest(shown.encode()).removeprefix("sha256:").encode()
        return b'"renderedSha256":"%s","content":%s' % (told, encode(shown))


class ListingTemplate(Struct, frozen=True):
    files: Mapping[Path, File]
    parts: tuple[bytes | _RenderedPart | None, ...]
    """Where there is None goes the key of the variables."""

    def fill(self, variables: PlaceholderValues) -> SharedBody:
        key, size = variables.key.encode(), 0
        pieces: list[bytes] = []
        for part in self.parts:
            if part is None:
                pieces.append(key)
            elif isinstance(part, bytes):
                pieces.append(part)
            else:
                own = part.filled(variables)
                size += len(own)
                pieces.append(own)
        return SharedBody(tuple(pieces), size)


class ListingTemplateCache:
    """Known by the files that were composed, which are held for as long as their name is here."""

    def __init__(self) -> None:
        self._known: dict[int, ListingTemplate] = {}

    async def of(self, ports: Ports, files: Mapping[Path, File]) -> ListingTemplate | None:
        """None where a content cannot be had, is not text, or all are too large together."""
        found = self._known.get(id(files))
        if found is not None:
            return found
        if sum(file.blob.size for file in files.values()) <= _LARGEST:
            blobs = await contents_of(ports, [file.blob for file in files.values()])
            found = build_template(files, blobs)
        if found:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[id(files)] = found
        return found


def build_template(
    files: Mapping[Path, File], contents: Mapping[Digest, bytes | CorruptContent]
) -> ListingTemplate | None:
    parts: list[bytes | _RenderedPart | None] = []
    for file in files.values():
        stored = contents[file.blob.digest]
        if isinstance(stored, CorruptContent) or not _is_text(stored):
            return None
        parts += [b",", *_row(file, stored)]
    return ListingTemplate(files, (b'{"files":[', *parts[1:], b"]}"))


def _row(file: File, stored: bytes) -> list[bytes | _RenderedPart | None]:
    if is_verbatim(file):
        return [encode(layered_file(file, stored))]
    pieces = split(stored)
    told = len(pieces) > 1
    hollow = replace(file, etag=_HOLE, variables=PlaceholderValues())
    row = encode(layered_file(hollow, None if told else stored))
    before, after = row.split(_AT, 1)
    tag, rest = encode(rendered_etag(file, _HOLE)).split(_QUOTED[1:-1])
    start, end = before + b'"etag":' + tag, rest + after
    if not told:
        return [start, None, end]
    return [start, None, end[:-1] + b",", _RenderedPart(pieces), b"}"]


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


LISTING_TEMPLATES: Final = ListingTemplateCache()
