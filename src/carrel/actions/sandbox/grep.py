"""Search in the files of a shared workspace for lines that match a pattern.

Small contents are read from the store in batches of 16 MiB, large ones in parts. More than 256 KiB
are searched in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.sandbox.workspace_files import (
    LARGE_FILE_BYTES,
    WorkspaceFiles,
    list_heads,
    read_file,
    read_line_parts,
)
from carrel.core.errors import NotFound
from carrel.core.files.file_kinds import is_binary
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import relative_to
from carrel.core.sandbox.grep import FileSearch, GrepQuery, GrepRow
from carrel.core.store.entry import Head
from carrel.ports import Ports
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES

BATCH_BYTES: Final = 16 * 1024 * 1024


class GrepResult(Struct, frozen=True):
    rows: tuple[GrepRow, ...]
    is_cut: bool = False
    """Whether there are more rows than the limits of the call."""
    skipped: tuple[Path, ...] = ()
    """Files that are too large for a search across lines."""


async def search(workspace: WorkspaceFiles, query: GrepQuery, max_bytes: int) -> GrepResult:
    """Return the matches by path; stops after more than ``max_bytes``.

    Raises NotFound for a root that does not exist, ValidationError for an invalid pattern.
    """
    heads = sorted(await list_heads(workspace), key=lambda head: head.path)
    single = [head for head in heads if head.path.text == query.root]
    selected = single or await _select(workspace, heads, query)
    skipped = [head for head in selected if query.multiline and _size(head) > BATCH_BYTES]
    rows: list[GrepRow] = []
    size, is_cut = 0, False
    for batch in _batches([head for head in selected if head not in skipped]):
        searches = {
            head.path: FileSearch(query, head.path.text, max_bytes - size) for head in batch
        }
        if _size(batch[0]) > LARGE_FILE_BYTES and not query.multiline:
            await _search_parts(workspace.ports, batch[0], searches[batch[0].path])
        else:
            await _search_texts(searches, await _read_texts(workspace.ports, batch))
        matches = [row for head in batch for row in searches[head.path].rows()]
        rows += matches
        size += sum(len(row.path) + len(row.text) + 1 for row in matches)
        if query.head_limit and len(rows) > query.head_limit:
            rows, is_cut = rows[: query.head_limit], True
        if is_cut or size > max_bytes:
            break
    return GrepResult(tuple(rows), is_cut, tuple(head.path for head in skipped))


async def _select(
    workspace: WorkspaceFiles, heads: Sequence[Head], query: GrepQuery
) -> Sequence[Head]:
    in_root = [head for head in heads if relative_to(query.root, head.path) is not None]
    if not in_root and query.root:
        await read_file(workspace, Path(query.root))
        raise NotFound(f"file not found: {query.root}")
    return [head for head in in_root if query.includes(head.path)]


def _size(head: Head) -> int:
    return head.entry.blob.size if head.entry else 0


def _batches(heads: Sequence[Head]) -> Iterator[list[Head]]:
    """Yield heads in order, each large file alone."""
    batch: list[Head] = []
    size = 0
    for head in heads:
        is_large = _size(head) > LARGE_FILE_BYTES
        if batch and (is_large or size + _size(head) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(head)
        size += _size(head)
        if is_large:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def _read_texts(ports: Ports, heads: Sequence[Head]) -> Mapping[Path, bytes]:
    blobs = {head.path: head.entry.blob for head in heads if head.entry}
    contents = await ports.blobs.get(set(blobs.values()))
    return {path: contents[blob.digest] for path, blob in blobs.items()}


async def _search_texts(searches: Mapping[Path, FileSearch], texts: Mapping[Path, bytes]) -> None:
    if sum(map(len, texts.values())) > THREAD_THRESHOLD_BYTES:
        await asyncio.to_thread(_feed_all, searches, texts)
    else:
        _feed_all(searches, texts)


def _feed_all(searches: Mapping[Path, FileSearch], texts: Mapping[Path, bytes]) -> None:
    for path, text in texts.items():
        if not is_binary(text):
            searches[path].feed(text)


async def _search_parts(ports: Ports, head: Head, search: FileSearch) -> None:
    assert head.entry
    async for lines in read_line_parts(ports, head.entry.blob):
        await asyncio.to_thread(search.feed, lines)
        if search.is_done:
            return
