"""Removes the bytes that a deletion leaves: in the database's files and in caches of sandboxes."""

from __future__ import annotations

from collections.abc import Callable

from carrel.ports import Ports
from carrel.ports.sandbox import CachingSandbox


async def remove_deleted_bytes(
    ports: Ports, is_affected: Callable[[bytes], bool] | None = None
) -> None:
    """Remove the bytes of deleted rows, and the files that earlier commands were given.

    `is_affected` finds bytes that may not remain, as in `Erasure.scrub`.
    """
    await ports.erasure.scrub(is_affected)
    for sandbox in ports.sandboxes.values():
        if isinstance(sandbox, CachingSandbox):
            await sandbox.clear_cache()
