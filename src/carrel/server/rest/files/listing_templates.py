"""Cached listings in which only placeholder values and etags differ by agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import load_contents
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.lru_cache import LruCache
from carrel.core.overlay.agent_resolution import is_verbatim, rendered_etag
from carrel.core.overlay.compose import File
from carrel.core.overlay.placeholders import (
    PlaceholderValues,
    TemplatePart,
    join_parts,
    split_template,
)
from carrel.ports import CorruptContent, Ports
from carrel.server.http.response import encode
from carrel.server.http.response_cache import SharedBody
from carrel.server.rest.files.file_models import overlay_file_to_model

_MAX_CONTENT_BYTES: Final = 256 * 2**10
"""Maximum total content of a listing that is cached as template."""
_ROW_OVERHEAD_BYTES: Final = 1024
"""Counted per row of a cached template besides its content."""

_PLACEHOLDER: Final = "\0"
_QUOTED_PLACEHOLDER: Final = encode(_PLACEHOLDER)
_ETAG_FIELD: Final = b'"etag":' + _QUOTED_PLACEHOLDER


class _RenderedPart(Struct, frozen=True):
    """Content with placeholders; renders to its digest and content fields."""

    parts: tuple[TemplatePart, ...]

    def render(self, variables: PlaceholderValues) -> bytes:
        content = join_parts(self.parts, variables)
        sha256 = digest(content.encode()).removeprefix("sha256:").encode()
        return b'"renderedSha256":"%s","content":%s' % (sha256, encode(content))


class ListingTemplate(Struct, frozen=True):
    """Encoded listing with gaps for agent-specific parts."""

    files: Mapping[Path, File]
    parts: tuple[bytes | _RenderedPart | None, ...]
    """None stands for the key of the placeholder values."""

    def fill(self, variables: PlaceholderValues) -> SharedBody:
        key, size = variables.key.encode(), 0
        chunks: list[bytes] = []
        for part in self.parts:
            if part is None:
                chunks.append(key)
            elif isinstance(part, bytes):
                chunks.append(part)
            else:
                rendered = part.render(variables)
                size += len(rendered)
                chunks.append(rendered)
        return SharedBody(tuple(chunks), size)


async def load_template(
    parts: LruCache[Any, Any], ports: Ports, files: Mapping[Path, File]
) -> ListingTemplate | None:
    """Template of these files; None if one is unreadable, not text or too large.

    Cached by identity of the composed files, which the entry keeps alive.
    """
    key = (ports.store, id(files))
    template: ListingTemplate | None = parts.get(key)
    content_bytes = sum(file.blob.size for file in files.values())
    if template is None and content_bytes <= _MAX_CONTENT_BYTES:
        blobs = await load_contents(ports, [file.blob for file in files.values()])
        template = build_template(files, blobs)
        if template is not None:
            parts.put(key, template, content_bytes + _ROW_OVERHEAD_BYTES * len(files))
    return template


def build_template(
    files: Mapping[Path, File], contents: Mapping[Digest, bytes | CorruptContent]
) -> ListingTemplate | None:
    parts: list[bytes | _RenderedPart | None] = []
    for file in files.values():
        stored = contents[file.blob.digest]
        if isinstance(stored, CorruptContent) or not _is_text(stored):
            return None
        parts += [b",", *_row_parts(file, stored)]
    return ListingTemplate(files, (b'{"files":[', *parts[1:], b"]}"))


def _row_parts(file: File, stored: bytes) -> list[bytes | _RenderedPart | None]:
    if is_verbatim(file):
        return [encode(overlay_file_to_model(file, stored))]
    parts = split_template(stored)
    has_placeholders = len(parts) > 1
    blank = replace(file, etag=_PLACEHOLDER, variables=PlaceholderValues())
    encoded = encode(overlay_file_to_model(blank, None if has_placeholders else stored))
    head, tail = encoded.split(_ETAG_FIELD, 1)
    etag_head, etag_tail = encode(rendered_etag(file, _PLACEHOLDER)).split(
        _QUOTED_PLACEHOLDER[1:-1]
    )
    start, end = head + b'"etag":' + etag_head, etag_tail + tail
    if not has_placeholders:
        return [start, None, end]
    return [start, None, end[:-1] + b",", _RenderedPart(parts), b"}"]


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
