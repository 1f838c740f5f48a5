"""Search in the files of a shared workspace for lines that match a pattern.

Contents are read from the store in batches of 16 MiB. More than 256 KiB are searched in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from carrel.actions.sandbox.workspace_files import WorkspaceFiles, list_heads, read_file
from carrel.core.errors import NotFound
from carrel.core.files.file_kinds import is_binary
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import relative_to
from carrel.core.sandbox.grep import GrepQuery, compile_pattern, format_matches, matching_lines
from carrel.core.store.entry import Head
from carrel.ports import Ports

BATCH_BYTES: Final = 16 * 1024 * 1024
INLINE_BYTES: Final = 256 * 1024
"""Up to this size the search runs on the event loop: starting a thread costs more."""


async def search(workspace: WorkspaceFiles, query: GrepQuery, max_bytes: int) -> bytes:
    """Return the formatted matches by path; stops after more than ``max_bytes``.

    Raises NotFound for a root that does not exist, ValidationError for an invalid pattern.
    """
    heads = sorted(await list_heads(workspace), key=lambda head: head.path)
    single = [head for head in heads if head.path.text == query.root]
    selected = single or await _select(workspace, heads, query)
    output: list[bytes] = []
    size = 0
    for batch in _batches(selected):
        texts = await _read_texts(workspace.ports, batch)
        texts_by_name = {"" if single else path.text: text for path, text in texts.items()}
        matches = await _search_texts(query, texts_by_name, max_bytes - size)
        output += matches
        size += sum(map(len, matches))
        if size > max_bytes:
            break
    return b"".join(output)


async def _select(
    workspace: WorkspaceFiles, heads: Sequence[Head], query: GrepQuery
) -> Sequence[Head]:
    in_root = [head for head in heads if relative_to(query.root, head.path) is not None]
    if not in_root and query.root:
        await read_file(workspace, Path(query.root))
        raise NotFound(f"file not found: {query.root}")
    return [head for head in in_root if query.includes(head.path)]


def _batches(heads: Iterable[Head]) -> Iterator[list[Head]]:
    batch: list[Head] = []
    size = 0
    for head in heads:
        assert head.entry
        if batch and size + head.entry.blob.size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(head)
        size += head.entry.blob.size
    if batch:
        yield batch


async def _read_texts(ports: Ports, heads: Sequence[Head]) -> Mapping[Path, bytes]:
    blobs = {head.path: head.entry.blob for head in heads if head.entry}
    contents = await ports.blobs.get(set(blobs.values()))
    texts = {path: contents[blob.digest] for path, blob in blobs.items()}
    return {path: text for path, text in texts.items() if not is_binary(text)}


async def _search_texts(
    query: GrepQuery, texts: Mapping[str, bytes], max_bytes: int
) -> Sequence[bytes]:
    if sum(map(len, texts.values())) > INLINE_BYTES:
        return await asyncio.to_thread(_matches, query, texts, max_bytes)
    return _matches(query, texts, max_bytes)


def _matches(query: GrepQuery, texts: Mapping[str, bytes], max_bytes: int) -> Sequence[bytes]:
    regex = compile_pattern(query.pattern, ignore_case=query.ignore_case)
    output: list[bytes] = []
    size = 0
    for name, text in texts.items():
        if numbers := matching_lines(regex, text, query.max_lines(max_bytes)):
            output.append(format_matches(query, name, text, numbers))
            size += len(output[-1])
        if size > max_bytes:
            break
    return output
