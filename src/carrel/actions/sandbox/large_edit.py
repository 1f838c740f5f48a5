"""Replaces a text in a large file of a workspace, read and stored in parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct

from carrel.actions.files import uploads
from carrel.actions.files.file_writer import FileWriter
from carrel.core.files.file_kinds import TextDetector
from carrel.core.overlay.compose import File
from carrel.core.sandbox.file_tools import MatchParts
from carrel.core.store.blob import Blob
from carrel.ports.blobs import BlobReader


class LargeEdit(Struct, frozen=True):
    """Replacement of every occurrence of a text in a stored content."""

    blobs: BlobReader
    blob: Blob
    old: bytes
    new: bytes

    async def count_matches(self) -> int:
        match_parts = MatchParts(self.old)
        async for part in self.blobs.read_parts(self.blob):
            await asyncio.to_thread(match_parts.feed, part)
        return match_parts.matches

    async def detect_text(self) -> TextDetector:
        """Return what kind of content the new one is."""
        detector = TextDetector()
        async for part in self._replaced_parts():
            await asyncio.to_thread(detector.feed, part)
        return detector

    async def write(self, writer: FileWriter) -> tuple[File, tuple[str, ...]]:
        """Write the new content; return the file and the names of replaced secrets.

        Raises what `put` raises.
        """
        received = await uploads.receive(writer, self._replaced_parts(), None, lambda _: None)
        if received.staged is None:
            result = await writer.put(received.content)
            return result.file, result.redacted.replaced
        staged = await uploads.put_staged(writer, received.staged)
        return staged.file, staged.content.replaced

    async def _replaced_parts(self) -> AsyncIterator[bytes]:
        match_parts = MatchParts(self.old)

        def replace(part: bytes) -> bytes:
            return match_parts.feed(part).replace(self.old, self.new)

        async for part in self.blobs.read_parts(self.blob):
            yield await asyncio.to_thread(replace, part)
        yield match_parts.finish()
