"""The bytes of many contents, of which some may not be had."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from carrel.core.identifiers import Digest
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent, Ports


async def contents_of(
    ports: Ports, blobs: Collection[Blob]
) -> Mapping[Digest, bytes | CorruptContent]:
    """In one batch; where one is gone or damaged, that one fails and no other."""
    try:
        return dict(await ports.blobs.get(blobs))
    except CorruptContent:
        return {blob.digest: await _content(ports, blob) for blob in blobs}


async def counts_of(ports: Ports, blobs: Collection[Blob]) -> Mapping[Digest, int | CorruptContent]:
    """How long each is for a model, in tokens: counted as text, whatever it is."""
    contents = await contents_of(ports, blobs)
    readable = {d: content for d, content in contents.items() if isinstance(content, bytes)}
    texts = [content.decode("utf-8", "replace") for content in readable.values()]
    counts = await ports.tokens.count(texts) if texts else ()
    failed = {d: content for d, content in contents.items() if isinstance(content, CorruptContent)}
    return {**failed, **dict(zip(readable, counts, strict=True))}


async def _content(ports: Ports, blob: Blob) -> bytes | CorruptContent:
    try:
        return (await ports.blobs.get([blob]))[blob.digest]
    except CorruptContent as problem:
        return problem
