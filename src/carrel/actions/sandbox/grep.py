"""Searching the files of a shared workspace for lines that a pattern fits.

The contents come from the store, some at a time. Little is searched on the spot, more in a thread,
and much by another program where the machine has one: the answers are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from carrel.actions.sandbox.workspace_files import WorkspaceFiles, list_heads, read_file
from carrel.core.errors import NotFound
from carrel.core.files.file_kinds import is_binary
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import beneath
from carrel.core.sandbox.grep import GrepQuery, compiled, format_matches, found_lines
from carrel.core.search.grep_pattern import translate_pattern
from carrel.core.store.tree import Head
from carrel.ports import Ports

BATCH: Final = 16 * 1024 * 1024
"""Bytes of files that are held at once."""
SMALL: Final = 256 * 1024
"""Bytes up to which the loop waits: a thread would take longer to begin."""
LARGE: Final = 8 * 1024 * 1024
"""Bytes from which on another program is asked."""


async def search(bench: WorkspaceFiles, wanted: GrepQuery, enough: int) -> bytes:
    """What is told of the lines that fit, in order of path; more than is enough is not looked for.

    Raises Missing where there is no such place, and Malformed for what is no pattern.
    """
    heads = sorted(await list_heads(bench), key=lambda head: head.path)
    alone = [head for head in heads if head.path.text == wanted.root]
    chosen = alone or await _within(bench, heads, wanted)
    said: list[bytes] = []
    size = 0
    for batch in _batches(chosen):
        texts = await _texts(bench.ports, batch)
        named = {"" if alone else path.text: text for path, text in texts.items()}
        more = await _said(bench.ports, wanted, named, enough - size)
        said += more
        size += sum(map(len, more))
        if size > enough:
            break
    return b"".join(said)


async def _within(bench: WorkspaceFiles, heads: Sequence[Head], wanted: GrepQuery) -> list[Head]:
    chosen = [head for head in heads if beneath(wanted.root, head.path) is not None]
    if not chosen and wanted.root:
        await read_file(bench, Path(wanted.root))
        raise NotFound(f"file not found: {wanted.root}")
    return [head for head in chosen if wanted.searches(head.path)]


def _batches(heads: Iterable[Head]) -> Iterator[list[Head]]:
    batch: list[Head] = []
    size = 0
    for head in heads:
        assert head.entry
        if batch and size + head.entry.blob.size > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(head)
        size += head.entry.blob.size
    if batch:
        yield batch


async def _texts(ports: Ports, heads: Sequence[Head]) -> Mapping[Path, bytes]:
    """Those of them that are text."""
    blobs = {head.path: head.entry.blob for head in heads if head.entry}
    contents = await ports.blobs.get(set(blobs.values()))
    texts = {path: contents[blob.digest] for path, blob in blobs.items()}
    return {path: text for path, text in texts.items() if not is_binary(text)}


async def _said(
    ports: Ports, wanted: GrepQuery, texts: Mapping[str, bytes], enough: int
) -> Sequence[bytes]:
    """What is told of each text in which something was found, until it is more than enough."""
    size = sum(map(len, texts.values()))
    if size > LARGE and ports.search is not None:
        pattern = translate_pattern(wanted.pattern, ignoring_case=wanted.ignoring_case)
        found = await ports.search.lines(pattern, list(texts.values()), wanted.most(enough))
        if found is not None:
            told_of = zip(texts.items(), found, strict=True)
            return [
                format_matches(wanted, name, text, lines)
                for (name, text), lines in told_of
                if lines
            ]
    if size > SMALL:
        return await asyncio.to_thread(_searched, wanted, texts, enough)
    return _searched(wanted, texts, enough)


def _searched(wanted: GrepQuery, texts: Mapping[str, bytes], enough: int) -> Sequence[bytes]:
    finder = compiled(wanted.pattern, ignoring_case=wanted.ignoring_case)
    said: list[bytes] = []
    size = 0
    for name, text in texts.items():
        if numbers := found_lines(finder, text, wanted.most(enough)):
            said.append(format_matches(wanted, name, text, numbers))
            size += len(said[-1])
        if size > enough:
            break
    return said
