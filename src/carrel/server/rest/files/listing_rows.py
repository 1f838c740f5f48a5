"""Encoded listing rows with content, shared by agents except for the etags."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from carrel.actions.files.files import render_content
from carrel.core.lru_cache import LruCache
from carrel.core.overlay.compose import File
from carrel.core.store.entry import Head
from carrel.server.http.response import encode
from carrel.server.http.response_cache import SharedBody
from carrel.server.rest.files.file_models import overlay_file_to_model

_PLACEHOLDER: Final = "\0"
_ETAG_FIELD: Final = b'"etag":' + encode(_PLACEHOLDER)
_MAX_SHARED_BYTES: Final = 16 * 2**10
"""Maximum content size of a row that is shared."""
_ROW_OVERHEAD_BYTES: Final = 512
"""Counted per cached row besides its text."""


def encode_listing(
    parts: LruCache[Any, Any], store: object, rows: Iterable[tuple[File, bytes]], *, raw: bool
) -> SharedBody:
    """Encode a listing of a store."""
    chunks: list[bytes] = []
    size = 0
    for file, stored in rows:
        rendered = render_content(file, stored)
        if rendered is stored and len(stored) <= _MAX_SHARED_BYTES:
            _, head, tail = _load_row(parts, store, file, stored, raw=raw)
            etag = encode(file.etag)
            chunks += (b",", head, etag, tail)
            size += len(etag)
        else:
            encoded = encode(overlay_file_to_model(file, stored, raw=raw, rendered=rendered))
            chunks += (b",", encoded)
            size += len(encoded)
    return SharedBody((b'{"files":[', *chunks[1:], b"]}"), size)


def _load_row(
    parts: LruCache[Any, Any], store: object, file: File, stored: bytes, *, raw: bool
) -> tuple[Head, bytes, bytes]:
    """Return the parts of a row before and after its etag, with its head.

    Cached by identity of the head, which the cached row keeps alive.
    """
    key = (
        store,
        id(file.head),
        file.own_version,
        file.source_label,
        file.file_class,
        file.has_update,
        file.upstream,
        file.is_override,
        raw,
    )
    row: tuple[Head, bytes, bytes] | None = parts.get(key)
    if row is None:
        encoded = encode(overlay_file_to_model(replace(file, etag=_PLACEHOLDER), stored, raw=raw))
        head, _, tail = encoded.partition(_ETAG_FIELD)
        row = (file.head, head + b'"etag":', tail)
        parts.put(key, row, len(encoded) + _ROW_OVERHEAD_BYTES)
    return row
