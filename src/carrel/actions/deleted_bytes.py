"""Removes the bytes that a deletion leaves: in the database's files and in caches of sandboxes."""

from __future__ import annotations

from carrel.ports import Ports
from carrel.ports.sandbox import CachingSandbox


async def remove_deleted_bytes(ports: Ports) -> None:
    """Remove the bytes of deleted rows, and the files that earlier commands were given."""
    await ports.erasure.scrub()
    for sandbox in ports.sandboxes.values():
        if isinstance(sandbox, CachingSandbox):
            await sandbox.clear_cache()
