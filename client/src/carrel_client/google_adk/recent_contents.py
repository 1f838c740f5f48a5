"""Contents that were saved or loaded last, in memory by their digest."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from carrel_client.file_models import FileRow

_MAX_BYTES: Final = 8 * 2**20
_MAX_CONTENT_BYTES: Final = 256 * 1024
"""Larger contents are not kept."""


class RecentContents:
    """Up to 8 MiB of small contents; those used last stay.

    A file is recognised by the digest that its row has now, so nothing becomes outdated.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        # Steps of a blocking client run in threads.
        self._lock = threading.Lock()

    def add(self, content: bytes) -> None:
        if len(content) > _MAX_CONTENT_BYTES:
            return
        digest = hashlib.sha256(content).hexdigest()
        with self._lock:
            if digest not in self._contents:
                self._contents[digest] = content
                self._size += len(content)
            self._contents.move_to_end(digest)
            while self._size > _MAX_BYTES:
                self._size -= len(self._contents.popitem(last=False)[1])

    def find_all(self, rows: Iterable[FileRow]) -> Mapping[str, bytes] | None:
        """The contents of files by path; None unless all are in memory."""
        contents: dict[str, bytes] = {}
        with self._lock:
            for row in rows:
                content = self._contents.get(row.sha256)
                if content is None:
                    return None
                self._contents.move_to_end(row.sha256)
                contents[row.path] = content
        return contents
