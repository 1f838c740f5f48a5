"""Receives the bytes of a file in parts, redacted and stored as they arrive."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct

from carrel.actions.files.file_writer import FileWriter, StagedContent, StagedWrite
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.policy import Limits
from carrel.core.redaction.part_redaction import PartRedactor
from carrel.ports import Ports
from carrel.ports.blobs import PART_BYTES, THREAD_THRESHOLD_BYTES, Hasher, PartWriter

_HELD_BYTES: Final = THREAD_THRESHOLD_BYTES
"""Contents up to this size are held until their commit."""


class ReceivedContent(Struct, frozen=True, gc=False):
    """What a caller sent: held if it is small, otherwise redacted and stored already."""

    sha256: bytes
    """Digest of the bytes as they were sent."""
    content: bytes
    """Empty if staged."""
    staged: StagedContent | None


CheckReceived = Callable[[bytes], None]
"""Called with the SHA-256 of what was received; raises a refusal."""


async def receive(
    writer: FileWriter,
    parts: AsyncIterator[bytes],
    declared_size: int | None,
    check: CheckReceived,
) -> ReceivedContent:
    """Receive a file's content for a write that is made later.

    Content that is not committed is garbage-collected. Raises what `put` raises
    for the path, WorkspaceTooLarge as soon as the limit is exceeded, and what `check` raises.
    """
    rules = await writer.check_before_upload()
    limits = rules.policy.limits_of(writer.stack[0])
    limits.check_file_size(declared_size or 0)
    chunks = _chunks(parts, limits)
    first = b""
    async for chunk in chunks:
        first += chunk
        if len(first) > _HELD_BYTES:
            stage = _Staging(writer.ports, rules)
            sha256, staged = await stage.run(first, chunks, check)
            return ReceivedContent(sha256, b"", staged)
    sha256 = hashlib.sha256(first).digest()
    check(sha256)
    return ReceivedContent(sha256, first, None)


async def put_staged(writer: FileWriter, staged: StagedContent) -> StagedWrite:
    """Write received content. Raises what `put` raises."""

    async def stage_again(rules: TenantRules, content: StagedContent) -> StagedContent:
        stage, parts = _Staging(writer.ports, rules), writer.ports.blobs.read_parts(content.blob)
        _, newer = await stage.run(b"", parts, lambda _: None)
        replaced = tuple(sorted({*content.replaced, *newer.replaced}))
        return StagedContent(newer.blob, replaced, newer.warned, newer.collection_revisions)

    return await writer.put_staged(staged, stage_again)


async def _chunks(parts: AsyncIterator[bytes], limits: Limits) -> AsyncIterator[bytes]:
    """Yield the parts joined to chunks of about PART_BYTES. Raises WorkspaceTooLarge."""
    pending: list[bytes] = []
    total = pending_bytes = 0
    async for part in parts:
        total += len(part)
        limits.check_file_size(total)
        pending.append(part)
        pending_bytes += len(part)
        if pending_bytes >= PART_BYTES:
            yield b"".join(pending)
            pending, pending_bytes = [], 0
    if pending:
        yield b"".join(pending)


class _Staging:
    """Redacts, hashes and writes one content; the next chunk is received meanwhile."""

    def __init__(self, ports: Ports, rules: TenantRules) -> None:
        self._rules = rules
        self._redactor = PartRedactor(rules.redactor)
        self._writer: PartWriter = ports.blobs.open_writer()
        self._received: Hasher | None = None
        """Hash of what was received; None while it is what was written and is pending."""

    async def run(
        self, first: bytes, chunks: AsyncIterator[bytes], check: CheckReceived
    ) -> tuple[bytes, StagedContent]:
        try:
            await self._write_all(first, chunks)
            sha256 = await asyncio.to_thread(self._finish)
            check(sha256)
            blob = await self._writer.finish()
        except BaseException:
            await self._writer.discard()
            raise
        redactor, revisions = self._redactor, self._rules.collection_revisions
        return sha256, StagedContent(blob, redactor.replaced, redactor.warned, revisions)

    async def _write_all(self, first: bytes, chunks: AsyncIterator[bytes]) -> None:
        writing = asyncio.create_task(asyncio.to_thread(self._write, first))
        try:
            async for chunk in chunks:
                await writing
                writing = asyncio.create_task(asyncio.to_thread(self._write, chunk))
        finally:
            await writing

    def _write(self, chunk: bytes) -> None:
        pending = self._redactor.pending
        redacted = self._redactor.feed(chunk)
        self._hash_received(pending, chunk)
        self._writer.write(redacted)

    def _finish(self) -> bytes:
        """Write the rest; return the SHA-256 of what was received."""
        pending = self._redactor.pending
        redacted = self._redactor.finish()
        self._hash_received(pending, b"")
        self._writer.write(redacted)
        return (self._received or self._writer.copy_hash()).digest()

    def _hash_received(self, pending: bytes, chunk: bytes) -> None:
        """Hash what was received by itself once it differs from what is stored."""
        if self._received is None and self._redactor.replaced:
            self._received = self._writer.copy_hash()
            self._received.update(pending)
        if self._received is not None:
            self._received.update(chunk)
