"""Contents of many blobs, some of which may be corrupt."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, Ports


async def load_contents(
    ports: Ports, blobs: Collection[Blob]
) -> Mapping[Digest, bytes | CorruptContent]:
    """Load contents in one batch; a missing or damaged blob yields its error only."""
    try:
        return dict(await ports.blobs.get(blobs))
    except CorruptContent:
        return {blob.digest: await _load_content(ports, blob) for blob in blobs}


async def count_tokens(
    ports: Ports, blobs: Collection[Blob]
) -> Mapping[Digest, int | CorruptContent]:
    """Count the tokens of each blob, decoded as UTF-8 with replacement."""
    contents = await load_contents(ports, blobs)
    readable = {d: content for d, content in contents.items() if isinstance(content, bytes)}
    texts = [content.decode("utf-8", "replace") for content in readable.values()]
    counts = await ports.tokenizer.count(texts) if texts else ()
    failed = {d: content for d, content in contents.items() if isinstance(content, CorruptContent)}
    return {**failed, **dict(zip(readable, counts, strict=True))}


async def _load_content(ports: Ports, blob: Blob) -> bytes | CorruptContent:
    try:
        return (await ports.blobs.get([blob]))[blob.digest]
    except CorruptContent as problem:
        return problem
