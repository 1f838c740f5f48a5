"""Answers as bytes: made once, however many ask, and kept under a key that means just them.

Of a template's followers most rows are the same but for the etag, which tells whose names stand in
a file. So an answer may be kept in pieces, of which it shares all but a few with others.
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
from carrel.core.store.tree import Head
from carrel.server.http.response import encode
from carrel.server.rest.files.file_models import layered_file

_HOLE: Final = "\0"
_AT: Final = b'"etag":' + encode(_HOLE)
_MOST_SHARED: Final = 2048
_SMALL: Final = 16 * 2**10
"""Bytes of a content up to which its row is shared."""


class SharedBody(msgspec.Struct):
    """An answer in pieces, and how many bytes of it are its own."""

    pieces: tuple[bytes, ...]
    size: int
    asked: bool = False
    """Whether it was asked for again: who is a third time is likely to be a fourth."""

    def whole(self) -> bytes:
        return b"".join(self.pieces)


class SupersededByWrite(Exception):
    """Something was written after the tag was told: this is of another, and must go by that."""

    def __init__(self, tag: str, value: object) -> None:
        super().__init__(tag)
        self.tag, self.value = tag, value


def raise_if_superseded(told: str, tag: str, value: object) -> None:
    """Raises Overtaken where what was made is not what was told of."""
    if tag != told:
        raise SupersededByWrite(tag, value)


class RowCache:
    """Rows of files with their content, as they go over the wire."""

    def __init__(self) -> None:
        self._shared: dict[Any, tuple[Head, bytes, bytes]] = {}
        """A row up to its etag and from there on, by the head it tells of, which is held here."""

    def listed(self, rows: Iterable[tuple[File, bytes]], *, raw: bool) -> SharedBody:
        """Raises Taken where a content is not text."""
        pieces: list[bytes] = []
        size = 0
        for file, stored in rows:
            shown = render_content(file, stored)
            if shown is stored and len(stored) <= _SMALL:
                _, before, after = self._row(file, stored, raw)
                etag = encode(file.etag)
                pieces += (b",", before, etag, after)
                size += len(etag)
            else:
                own = encode(layered_file(file, stored, raw=raw, shown=shown))
                pieces += (b",", own)
                size += len(own)
        return SharedBody((b'{"files":[', *pieces[1:], b"]}"), size)

    def _row(self, file: File, stored: bytes, raw: bool) -> tuple[Head, bytes, bytes]:
        key = (id(file.head), file.origin, file.file_class, file.upstream is None, raw)
        found = self._shared.get(key)
        if found is None:
            whole = encode(layered_file(replace(file, etag=_HOLE), stored, raw=raw))
            before, _, after = whole.partition(_AT)
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            found = self._shared[key] = (file.head, before + b'"etag":', after)
        return found


class ResponseCache:
    """What was answered; the oldest go first."""

    def __init__(self, room: int = 64 * 2**20, most: int = 256 * 2**10) -> None:
        self._room, self._most = room, most
        self._kept: OrderedDict[Hashable, bytes | SharedBody] = OrderedDict()
        self._flights: dict[Hashable, asyncio.Future[None]] = {}
        self._size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> bytes | None:
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        return found if isinstance(found, bytes) else self._whole(key, found)

    def _whole(self, key: Hashable, pieces: SharedBody) -> bytes:
        """Put together; and kept so, where it is asked for often."""
        body = pieces.whole()
        if pieces.asked:
            del self._kept[key]
            self._size -= _size(pieces)
            self._add(key, body)
        pieces.asked = True
        return body

    async def get_or_create(self, key: Hashable, make: Callable[[], Awaitable[object]]) -> bytes:
        """What is kept, or is made now: once, however many ask for it at the same time.

        Nothing is kept of what says itself that it does not ``last``.
        """
        loop = asyncio.get_running_loop()
        while (body := self.get(key)) is None:
            flight = self._flights.get(key)
            if flight is None or flight.get_loop() is not loop:
                break
            await asyncio.wait([flight])
        else:
            return body
        flight = self._flights[key] = loop.create_future()
        try:
            return self.encode_and_keep(key, await make())
        finally:
            del self._flights[key]
            flight.set_result(None)

    def encode_and_keep(self, key: Hashable, value: object) -> bytes:
        """As bytes, and kept if it lasts."""
        return self.put(key, value) if getattr(value, "lasts", True) else encode(value)

    def put(self, key: Hashable, value: object) -> bytes:
        kept = value if isinstance(value, SharedBody) else encode(value)
        if key not in self._kept:
            self._add(key, kept)
        return kept if isinstance(kept, bytes) else kept.whole()

    def _add(self, key: Hashable, kept: bytes | SharedBody) -> None:
        size = _size(kept)
        if size > self._most:
            return
        self._kept[key] = kept
        self._size += size
        while self._size > self._room:
            self._size -= _size(self._kept.popitem(last=False)[1])


def _size(kept: bytes | SharedBody) -> int:
    """Its own bytes, and somewhat for what it shares."""
    return len(kept) if isinstance(kept, bytes) else kept.size + 16 * len(kept.pieces)


RESPONSE_CACHE: Final = ResponseCache()
ROW_CACHE: Final = RowCache()
