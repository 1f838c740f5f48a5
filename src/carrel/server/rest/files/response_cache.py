"""Cache of encoded responses, keyed by revision.

Agents of one template share most listing rows except for the etags. A response may therefore be
cached as chunks, most of which it shares with others.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from carrel.actions.files.files import render_content
from carrel.core.overlay.compose import File
from carrel.core.store.entry import Head
from carrel.server.http.response import encode
from carrel.server.rest.files.file_models import overlay_file_to_model

_PLACEHOLDER: Final = "\0"
_ETAG_FIELD: Final = b'"etag":' + encode(_PLACEHOLDER)
_MAX_SHARED_ROWS: Final = 2048
_MAX_SHARED_BYTES: Final = 16 * 2**10
"""Maximum content size of a row that is shared."""


class SharedBody(msgspec.Struct):
    """A response as chunks, and how many of its bytes are not shared."""

    chunks: tuple[bytes, ...]
    own_bytes: int
    requested_again: bool = False
    """Set by the second request; the third stores the joined body."""

    def join(self) -> bytes:
        return b"".join(self.chunks)


class SupersededByWrite(Exception):
    """A write happened after the etag was computed; carries the new etag and value."""

    def __init__(self, etag: str, value: object) -> None:
        super().__init__(etag)
        self.etag, self.value = etag, value


def raise_if_superseded(expected_etag: str, etag: str, value: object) -> None:
    """Raise SupersededByWrite if the value has another etag than expected."""
    if etag != expected_etag:
        raise SupersededByWrite(etag, value)


class RowCache:
    """Encoded listing rows with content."""

    def __init__(self) -> None:
        self._shared: dict[Any, tuple[Head, bytes, bytes]] = {}
        """Row before and after its etag, by identity of its head, which the entry keeps alive."""

    def encode_listing(self, rows: Iterable[tuple[File, bytes]], *, raw: bool) -> SharedBody:
        """Encode a listing. Raises Conflict if a content is not text."""
        chunks: list[bytes] = []
        size = 0
        for file, stored in rows:
            rendered = render_content(file, stored)
            if rendered is stored and len(stored) <= _MAX_SHARED_BYTES:
                _, head, tail = self._shared_row(file, stored, raw)
                etag = encode(file.etag)
                chunks += (b",", head, etag, tail)
                size += len(etag)
            else:
                encoded = encode(overlay_file_to_model(file, stored, raw=raw, rendered=rendered))
                chunks += (b",", encoded)
                size += len(encoded)
        return SharedBody((b'{"files":[', *chunks[1:], b"]}"), size)

    def _shared_row(self, file: File, stored: bytes, raw: bool) -> tuple[Head, bytes, bytes]:
        key = (
            id(file.head),
            file.source_label,
            file.file_class,
            file.available_update is None,
            raw,
        )
        row = self._shared.get(key)
        if row is None:
            encoded = encode(
                overlay_file_to_model(replace(file, etag=_PLACEHOLDER), stored, raw=raw)
            )
            head, _, tail = encoded.partition(_ETAG_FIELD)
            if len(self._shared) >= _MAX_SHARED_ROWS:
                self._shared.clear()
            row = self._shared[key] = (file.head, head + b'"etag":', tail)
        return row


class ResponseCache:
    """Cache of encoded responses, bounded in bytes; evicts the oldest first."""

    def __init__(self, max_bytes: int = 64 * 2**20, max_entry_bytes: int = 256 * 2**10) -> None:
        self._max_bytes, self._max_entry_bytes = max_bytes, max_entry_bytes
        self._entries: OrderedDict[Hashable, bytes | SharedBody] = OrderedDict()
        self._in_flight: dict[Hashable, asyncio.Future[None]] = {}
        self._size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        return entry if isinstance(entry, bytes) else self._join(key, entry)

    def _join(self, key: Hashable, shared: SharedBody) -> bytes:
        """Join the chunks; from the third request on store the joined body."""
        body = shared.join()
        if shared.requested_again:
            del self._entries[key]
            self._size -= _entry_bytes(shared)
            self._add(key, body)
        shared.requested_again = True
        return body

    async def get_or_create(self, key: Hashable, build: Callable[[], Awaitable[object]]) -> bytes:
        """Return the cached body, or build it once for all concurrent callers.

        A value whose `is_cacheable` is false is not stored.
        """
        loop = asyncio.get_running_loop()
        while (body := self.get(key)) is None:
            future = self._in_flight.get(key)
            if future is None or future.get_loop() is not loop:
                break
            await asyncio.wait([future])
        else:
            return body
        future = self._in_flight[key] = loop.create_future()
        try:
            return self.encode_and_store(key, await build())
        finally:
            del self._in_flight[key]
            future.set_result(None)

    def encode_and_store(self, key: Hashable, value: object) -> bytes:
        """Encode the value, and store it if it is cacheable."""
        return self.put(key, value) if getattr(value, "is_cacheable", True) else encode(value)

    def put(self, key: Hashable, value: object) -> bytes:
        entry = value if isinstance(value, SharedBody) else encode(value)
        if key not in self._entries:
            self._add(key, entry)
        return entry if isinstance(entry, bytes) else entry.join()

    def _add(self, key: Hashable, entry: bytes | SharedBody) -> None:
        size = _entry_bytes(entry)
        if size > self._max_entry_bytes:
            return
        self._entries[key] = entry
        self._size += size
        while self._size > self._max_bytes:
            self._size -= _entry_bytes(self._entries.popitem(last=False)[1])


def _entry_bytes(entry: bytes | SharedBody) -> int:
    """Bytes not shared with other entries, plus 16 per chunk."""
    return len(entry) if isinstance(entry, bytes) else entry.own_bytes + 16 * len(entry.chunks)


RESPONSE_CACHE: Final = ResponseCache()
ROW_CACHE: Final = RowCache()
