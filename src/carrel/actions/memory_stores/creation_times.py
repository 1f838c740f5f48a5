"""When memories were created: the time of their oldest kept version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.store.entry import Head, TransferKind, Version
from carrel.ports import Ports

_MAX_MOVES = 100
_HISTORY_LIMIT = 1000


async def load_creation_times(
    ports: Ports, scope: Scope, heads: Sequence[Head]
) -> Mapping[Path, TimestampMs]:
    """Return the creation time of each file. One query, unless files were moved or made again."""
    times = {head.path: head.at for head in heads if head.version == 1 and not head.stored_file_id}
    unmoved = [head for head in heads if head.path not in times and not head.stored_file_id]
    first = (
        await ports.trees.versions([(scope, head.path, 1) for head in unmoved]) if unmoved else ()
    )
    for head, row in zip(unmoved, first, strict=True):
        if row is not None:
            times[head.path] = row.head.at
    for head in heads:
        if head.path not in times:
            times[head.path] = await _oldest_time(ports, scope, head)
    return times


async def _oldest_time(ports: Ports, scope: Scope, head: Head) -> TimestampMs:
    """Follow the history of a file to its oldest kept version."""
    file_id, path, before, at = head.file_id(scope), head.path, head.version + 1, head.at
    for _ in range(_MAX_MOVES):
        rows = await ports.trees.history(scope, path, before=before, limit=_HISTORY_LIMIT)
        oldest = _oldest_of_file(scope, rows, file_id)
        if oldest is None:
            break
        at, source = oldest.head.at, oldest.source
        if source is None or source.kind is not TransferKind.MOVE:
            break
        path, before = Path(source.path), source.version + 1
    return at


def _oldest_of_file(scope: Scope, rows: Sequence[Version], file_id: str) -> Version | None:
    oldest = None
    for row in rows:
        if row.head.entry is None or row.head.file_id(scope) != file_id:
            break
        oldest = row
    return oldest
