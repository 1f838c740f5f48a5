"""Loads and redacts the contents of file changes, and stores them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files.content_redaction import redact_contents
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.agents.identity_name import IDENTITY_PATH
from carrel.core.errors import Refusal
from carrel.core.overlay.commit_plan import CommitContext
from carrel.core.overlay.file_changes import TRANSFERS, ChangeKind, FailedChange, FileChange
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, Ports

_BATCH_BYTES: Final = 16 * 2**20
"""Contents of moved and copied files that are held at once, unless one is larger."""


class ChangeContents(Struct, frozen=True):
    """Changes with the blobs of their contents."""

    changes: Sequence[FileChange]
    failures: Sequence[FailedChange]
    redacted: dict[int, RedactionResult]
    """Results of redaction by index of the requested put."""
    identity: bytes | None
    """New content of IDENTITY.md, if it gets one."""


async def load_contents(
    ports: Ports, rules: TenantRules, context: CommitContext, changes: Sequence[FileChange]
) -> ChangeContents:
    """Redact the contents of puts, moves and copies, and store those that are new."""
    failures: list[FailedChange] = []
    results = await _redact_puts(rules, context, changes, failures)
    puts = [n for n, result in enumerate(results) if result is not None]
    stored = await ports.blobs.put([result.content for result in results if result is not None])
    blobs = dict(zip(puts, stored, strict=True))
    moved = await _redact_transfers(ports, rules, context, changes)
    failed = {id(failure.change) for failure in failures}
    with_blobs, redacted, identity = [], {}, None
    for n, change in enumerate(changes):
        if id(change) in failed:
            continue
        blob = blobs.get(n) or moved.get(change.path.text)
        with_blobs.append(change if blob is None else replace(change, blob=blob))
        if (result := results[n]) is not None:
            redacted[change.index] = result
        if change.path == IDENTITY_PATH and blob is not None:
            identity = result.content if result else (await ports.blobs.get([blob]))[blob.digest]
    return ChangeContents(with_blobs, failures, redacted, identity)


async def _redact_puts(
    rules: TenantRules,
    context: CommitContext,
    changes: Sequence[FileChange],
    failures: list[FailedChange],
) -> Sequence[RedactionResult | None]:
    """Redact the new contents; records those that are too large as failures."""
    numbers = [
        number
        for number, change in enumerate(changes)
        if change.kind is ChangeKind.PUT or change.content is not None
    ]
    contents = [changes[number].content or b"" for number in numbers]
    redacted = await redact_contents(rules, context.scope, contents)
    results: list[RedactionResult | None] = [None] * len(changes)
    for number, result in zip(numbers, redacted, strict=True):
        if isinstance(result, Refusal):
            failures.append(FailedChange(changes[number], result))
        else:
            results[number] = result
    return results


async def _redact_transfers(
    ports: Ports, rules: TenantRules, context: CommitContext, changes: Sequence[FileChange]
) -> dict[str, Blob]:
    """Blobs of moved and copied files by target; new ones where secrets were found."""
    sources = {
        change.path.text: file.blob
        for change in changes
        if change.kind in TRANSFERS
        and change.content is None
        and change.source is not None
        and (file := context.resolve(change.source))
    }
    replaced: dict[Blob, Blob] = {}
    for batch in _batches(list(dict.fromkeys(sources.values()))):
        try:
            contents = await ports.blobs.get(batch)
        except CorruptContent as problem:
            names = [path for path, blob in sources.items() if blob in batch]
            raise CorruptContent(f"{names[0]}: {problem}") from problem
        results = await asyncio.to_thread(
            rules.redactor.redact_all, [contents[blob.digest] for blob in batch]
        )
        changed = [
            (blob, result.content)
            for blob, result in zip(batch, results, strict=True)
            if result.replaced
        ]
        stored = await ports.blobs.put([content for _, content in changed])
        replaced |= {blob: new for (blob, _), new in zip(changed, stored, strict=True)}
    return {path: replaced.get(blob, blob) for path, blob in sources.items()}


def _batches(blobs: Sequence[Blob]) -> Iterator[list[Blob]]:
    batch: list[Blob] = []
    size = 0
    for blob in blobs:
        if batch and size + blob.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(blob)
        size += blob.size
    if batch:
        yield batch
