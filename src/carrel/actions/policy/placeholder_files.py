"""Files that pinning would serve with raw placeholders."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.actions.blob_contents import load_contents
from carrel.core.identifiers import Digest, Path
from carrel.core.overlay.placeholders import has_placeholders
from carrel.core.store.blob import Blob
from carrel.ports import Ports

MAX_NAMED: Final = 100
"""Paths named in a refusal."""
_BATCH_SIZE: Final = 50
"""Contents read together."""


async def find_placeholder_files(
    ports: Ports, blobs: Collection[tuple[Path, Blob]]
) -> Sequence[Path]:
    """Paths of contents that have placeholders, sorted. Corrupt contents have none."""
    unique = list({blob.digest: blob for _, blob in blobs}.values())
    digests: set[Digest] = set()
    for start in range(0, len(unique), _BATCH_SIZE):
        contents = await load_contents(ports, unique[start : start + _BATCH_SIZE])
        readable = {
            digest: content for digest, content in contents.items() if isinstance(content, bytes)
        }
        digests |= await asyncio.to_thread(_with_placeholders, readable)
    return sorted({path for path, blob in blobs if blob.digest in digests})


def _with_placeholders(contents: Mapping[Digest, bytes]) -> set[Digest]:
    return {digest for digest, content in contents.items() if has_placeholders(content)}
