"""Object store in a dictionary, held to the contract suite like those of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping

from carrel.core.catalog.object_keys import parse_segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, digest


class DictionaryObjectStore:
    """Flat key space like a bucket's, without a server to ask.

    ``written`` counts puts, also those of bytes that were there.
    """

    forbids_nested_keys = False

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.written = 0

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        refused: dict[str, str] = {}
        for key, content in contents.items():
            try:
                parse_segments(key)
            except ValidationError as problem:
                refused[key] = str(problem)
                continue
            self.objects[key] = content
            self.written += 1
        return refused

    async def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    async def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        for key in sorted(self.objects):
            if key.startswith(prefix):
                yield key, digest(self.objects[key])
