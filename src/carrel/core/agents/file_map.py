"""The file map in AGENTS.md: a marked block that lists an agent's files and peers.

Everything outside the block stays byte-identical. Lines of the block come from other files, so they
are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path
from carrel.core.markdown.fences import (
    BULLET_PATTERN,
    BYTE_ORDER_MARK,
    detect_line_end,
    front_matter_end,
    lines_outside_fences,
)
from carrel.core.markdown.labelled_lines import ValueSpan
from carrel.core.overlay.placeholders import TOKENS, sanitize_value
from carrel.core.sessions.shared_session_visibility import is_private_path

AGENTS_PATH: Final = Path("AGENTS.md")
BLOCK_START: Final = "<!-- carrel:map -->"
BLOCK_END: Final = "<!-- /carrel:map -->"
NEW_FILE_TITLE: Final = "# Agents\n"
"""Start of a new file."""

MAX_FILES: Final = 500
MAX_PEERS: Final = 200
_MAX_DEPTH: Final = 6
"""Folder levels listed separately; deeper paths are shown on one line."""
_MAX_SUMMARY_LENGTH: Final = 120
_MAX_PARAGRAPH_LENGTH: Final = 4 * _MAX_SUMMARY_LENGTH
_SUMMARY_SCAN_LENGTH: Final = 16 * 1024
"""Characters of a file that are scanned for its summary."""

_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*\Z")
_ITEM: Final = re.compile(rf" {{0,3}}{BULLET_PATTERN}[ \t]+")
_SENTENCE: Final = re.compile(
    r""".*?(?:[.!?\u2026]["'\u201d\u2019\xbb)\]*_`]*(?= |\Z)|[\u3002\uff01\uff1f])"""
)
"""Text up to an end mark before a space, or up to an ideographic one."""
_TOKEN: Final = re.compile(r"\{\{(" + "|".join(TOKENS) + r")\}\}")
_DECORATION: Final = re.compile(r"[\s=*_#-]*")


class MapEntry(Struct, frozen=True):
    """One file and its summary."""

    path: Path
    summary: str = ""


class PeerAgent(Struct, frozen=True):
    """Another agent of the tenant."""

    slug: str
    name: str


def summarize(text: bytes) -> str:
    """First heading or first sentence of a file, whichever comes first; may be empty."""
    try:
        file = _strip_comments(text.decode()[:_SUMMARY_SCAN_LENGTH])
    except UnicodeDecodeError:
        return ""
    headings_and_sentences = _headings_and_sentences(file.removeprefix(BYTE_ORDER_MARK))
    return next(filter(None, map(_readable_summary, headings_and_sentences)), "")


def _headings_and_sentences(file: str) -> Iterator[str]:
    """Text of each heading, and the first sentence of each paragraph and list item."""
    paragraph, next_start = "", 0
    for line in lines_outside_fences(file[front_matter_end(file) :]):
        text = line.text[:_MAX_PARAGRAPH_LENGTH]
        heading, item = _HEADING.match(text), _ITEM.match(text)
        is_continued = not (heading or item or _DECORATION.fullmatch(text))
        if paragraph and (not is_continued or line.start != next_start):
            yield _first_sentence(paragraph)
            paragraph = ""
        next_start = line.next_start
        if heading:
            yield heading["text"]
        elif len(paragraph) < _MAX_PARAGRAPH_LENGTH:
            text = text[item.end() if item else 0 :]
            paragraph = f"{paragraph} {text}" if is_continued or item else ""
    yield _first_sentence(paragraph)


def _first_sentence(paragraph: str) -> str:
    """First sentence on one line; the paragraph if it has no end of a sentence."""
    flat = " ".join(paragraph.split())
    sentence = _SENTENCE.match(flat)
    return sentence[0] if sentence else flat


def _strip_comments(text: str) -> str:
    parts, position = [], 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[position:start])
        position = end + 3
    return "".join((*parts, text[position:]))


def _readable_summary(text: str) -> str:
    """Summary with placeholders as plain words.

    The map must not contain personal data.
    """
    plain = _TOKEN.sub(lambda token: token[1].lower().replace("_", " "), " ".join(text.split()))
    return (
        plain
        if len(plain) <= _MAX_SUMMARY_LENGTH
        else plain[: _MAX_SUMMARY_LENGTH - 1].rstrip() + "…"
    )


def can_delegate_to(patterns: Sequence[object], slug: str) -> bool:
    """Whether an agent may delegate to a peer.

    `*` matches any characters, no patterns allow all.
    """
    text_patterns = [pattern for pattern in patterns if isinstance(pattern, str)]
    return not patterns or any(_matches_glob(pattern, slug) for pattern in text_patterns)


def _matches_glob(pattern: str, slug: str) -> bool:
    """Matches part by part from the left, so the time is linear."""
    first, *parts = pattern.split("*")
    if not parts:
        return slug == pattern
    last = parts.pop()
    if not slug.startswith(first) or not slug.endswith(last):
        return False
    position, end = len(first), len(slug) - len(last)
    for part in parts:
        index = slug.find(part, position, end)
        if index < 0:
            return False
        position = index + len(part)
    return position <= end


def render_map(entries: Sequence[MapEntry], peers: Sequence[PeerAgent]) -> str:
    """The block from marker to marker, without a trailing line end."""
    visible = list(_collapse_private_folders(entries))
    lines = [BLOCK_START, "", "## Files", "", *_tree_lines(visible[:MAX_FILES])]
    lines += _overflow_line(len(visible) - MAX_FILES, "files")
    if peers:
        peer_lines = [
            f"- {sanitize_value(peer.slug)}: {sanitize_value(peer.name)}"
            for peer in peers[:MAX_PEERS]
        ]
        lines += ["", "## Peers", "", *peer_lines, *_overflow_line(len(peers) - MAX_PEERS, "peers")]
    return "\n".join([*lines, "", BLOCK_END])


def _overflow_line(count: int, label: str) -> list[str]:
    return [f"- … and {count} more {label}"] if count > 0 else []


def _collapse_private_folders(entries: Iterable[MapEntry]) -> Iterator[MapEntry]:
    """The entries, with only the first of each private folder.

    The map is part of shared prompts, and a name below `notes/` or `memory/` can tell a secret.
    """
    folders: set[str] = set()
    for entry in entries:
        folder = _private_folder(entry.path)
        if folder is None or folder not in folders:
            yield entry
        folders.add(folder or "")


def _private_folder(path: Path) -> str | None:
    folder, separator, _ = path.text.partition("/")
    return folder if separator and is_private_path(path) else None


def _tree_lines(entries: Iterable[MapEntry]) -> Iterator[str]:
    """One line for each folder when entered and one for each file outside private folders."""
    current_folders: list[str] = []
    for entry in entries:
        folder = _private_folder(entry.path)
        if folder is not None:
            current_folders = [folder]
            yield f"- {sanitize_value(folder)}/"
            continue
        parts = entry.path.text.split("/")
        folders = parts[:-1][:_MAX_DEPTH]
        for depth in range(_common_prefix_length(current_folders, folders), len(folders)):
            yield f"{'  ' * depth}- {sanitize_value(folders[depth])}/"
        current_folders = folders
        name = sanitize_value("/".join(parts[len(folders) :]))
        suffix = f": {sanitize_value(entry.summary)}" if entry.summary else ""
        yield f"{'  ' * len(folders)}- {name}{suffix}"


def _common_prefix_length(first: Sequence[str], second: Sequence[str]) -> int:
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def replace_map(file: str, block: str) -> str:
    """Replace the block, or append it.

    After an unclosed code fence the block would be code, so it is then inserted at the top.
    """
    block = block.replace("\n", detect_line_end(file))
    span = _find_block(file)
    if span is not None:
        return file[: span.start] + block + file[span.end :]
    end = detect_line_end(file)
    gap = "" if not file or file == BYTE_ORDER_MARK else end if file.endswith(end) else end * 2
    after = f"{file}{gap}{block}{end}"
    if _find_block(after) is not None:
        return after
    byte_order_mark = BYTE_ORDER_MARK if file.startswith(BYTE_ORDER_MARK) else ""
    return f"{byte_order_mark}{block}{end}{end}{file.removeprefix(BYTE_ORDER_MARK)}"


def without_map(file: str) -> str:
    """The file without its block."""
    span = _find_block(file)
    return file if span is None else file[: span.start] + file[span.end :]


def _find_block(file: str) -> ValueSpan | None:
    """Span from the first closing marker back to the nearest opening marker."""
    if BLOCK_START not in file or BLOCK_END not in file:
        return None
    start: int | None = None
    for line in lines_outside_fences(file):
        marker = "" if line.quote_depth else line.text.rstrip(" \t")
        if marker == BLOCK_START:
            start = line.start
        elif marker == BLOCK_END and start is not None:
            return ValueSpan(start, line.end)
    return None
