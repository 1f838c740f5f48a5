"""Cache of encoded responses, keyed by revision.

Agents of one template share most listing rows except for the etags. A response may therefore be
cached as chunks, most of which it shares with others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final

import msgspec

from carrel.core.lru_cache import LruCache
from carrel.server.http.response import encode

_MAX_PARTS_BYTES: Final = 32 * 2**20


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


class ResponseCache:
    """Encoded responses in an LRU cache bounded in bytes."""

    def __init__(self, max_bytes: int = 64 * 2**20, max_entry_bytes: int = 256 * 2**10) -> None:
        self._entries: LruCache[Hashable, bytes | SharedBody] = LruCache(max_bytes, max_entry_bytes)
        self._in_flight: dict[Hashable, asyncio.Future[None]] = {}

    @property
    def hits(self) -> int:
        return self._entries.hits

    @property
    def misses(self) -> int:
        return self._entries.misses

    def clear(self) -> None:
        self._entries.clear()

    def get(self, key: Hashable) -> bytes | None:
        entry = self._entries.get(key)
        return self._join(key, entry) if isinstance(entry, SharedBody) else entry

    def _join(self, key: Hashable, shared: SharedBody) -> bytes:
        """Join the chunks; from the third request on store the joined body."""
        body = shared.join()
        if shared.requested_again:
            self._entries.put(key, body, len(body))
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
        self._entries.put(key, entry, _entry_bytes(entry))
        return entry if isinstance(entry, bytes) else entry.join()


def _entry_bytes(entry: bytes | SharedBody) -> int:
    """Bytes not shared with other entries, plus 16 per chunk."""
    return len(entry) if isinstance(entry, bytes) else entry.own_bytes + 16 * len(entry.chunks)


class AppCaches:
    """Caches of one app. Keys contain the store, so that no app serves another's."""

    __slots__ = ("parts", "responses")

    def __init__(self) -> None:
        self.responses = ResponseCache()
        self.parts: LruCache[Hashable, Any] = LruCache(_MAX_PARTS_BYTES)
        """Encoded parts that several responses share, weighed in bytes."""
