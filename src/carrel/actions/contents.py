"""The bytes of many contents, of which some may not be had."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from carrel.core.names import Digest
from carrel.core.tree import Blob
from carrel.ports import Corrupt, World


async def contents_of(world: World, blobs: Collection[Blob]) -> Mapping[Digest, bytes | Corrupt]:
    """In one batch; where one is gone or damaged, that one fails and no other."""
    try:
        return dict(await world.blobs.get(blobs))
    except Corrupt:
        return {blob.digest: await _content(world, blob) for blob in blobs}


async def _content(world: World, blob: Blob) -> bytes | Corrupt:
    try:
        return (await world.blobs.get([blob]))[blob.digest]
    except Corrupt as problem:
        return problem
