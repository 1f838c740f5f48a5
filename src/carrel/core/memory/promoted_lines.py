"""Lines that dreams add to MEMORY.md, and their removal.

A dream appends one block: a blank line, a heading, a blank line and one line per memory. Promotion
records hold every heading and line as written; only exact matches are ever removed, so edited or
moved lines and all other text stay byte-identical.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import unescape
from typing import Final
from unicodedata import category

from msgspec import Struct

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.memory.promotion_score import RankedCandidate, RejectedCandidate, RejectionReason
from carrel.core.overlay.placeholders import sanitize_value
from carrel.core.search.full_text import tokenize

MEMORY_PATH: Final = Path("MEMORY.md")
NEW_FILE_TITLE: Final = "# MEMORY.md\n"

_HEADING: Final = re.compile(r"#{1,2}(?:\s|\Z)")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_SWEEP_LIMIT_MESSAGE: Final = "the limit of promotions per sweep is reached"
_BULLET: Final = re.compile(r"\A\s*(?:[-*+>]|#+)\s+")
_ESCAPE: Final = re.compile(r"\\(?=[^\w\s])")
_PUNCTUATION: Final = re.compile(r"[^\w\s|~]")
_SYMBOL_CATEGORIES: Final = frozenset({"Sm", "Sc", "So"})
"""Mathematical, currency and other symbols, which distinguish contents."""
_NEGATIVE: Final = re.compile(r"(?<![^\W_])-(?=[0-9])")
_SCORE_SUFFIX: Final = re.compile(r"\s*_\(score=[0-9.]+, hits=[0-9]+, days=[0-9]+\)_\s*\Z")


class PromotedLine(Struct, frozen=True):
    """One line in MEMORY.md that was written by a dream."""

    memory: str
    heading: str
    line: str
    at: TimestampMs


class Promotion(Struct, frozen=True):
    """A memory to be promoted."""

    memory: str
    score: float
    hits: int
    days: int
    line: str


class MemoryFileUpdate(Struct, frozen=True):
    """New text of MEMORY.md, with promoted, rejected and evicted memories."""

    text: str
    promoted: tuple[Promotion, ...]
    rejected: tuple[RejectedCandidate, ...]
    evicted: tuple[PromotedLine, ...]


def format_timestamp(at: TimestampMs) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def block_heading(at: TimestampMs) -> str:
    return f"## Dreamed {format_timestamp(at)}"


def build_promotion(ranking: RankedCandidate, redact: Callable[[str], str] = str) -> Promotion:
    """Format a memory as one escaped line."""
    stats = ranking.candidate.stats
    numbers = f"_(score={ranking.score:.2f}, hits={stats.hits}, days={stats.days})_"
    line = f"- {sanitize_value(redact(ranking.candidate.content))} {numbers}"
    return Promotion(ranking.candidate.memory, ranking.score, stats.hits, stats.days, line)


def write_promotions(
    text: str | None,
    existing: Sequence[PromotedLine],
    rankings: Sequence[RankedCandidate],
    at: TimestampMs,
    limits: tuple[int, int],
    redact: Callable[[str], str] = str,
) -> MemoryFileUpdate:
    """Append new memories, best first; evict the oldest blocks if needed.

    `limits` are the maximum number of promotions and the maximum length of the text; `redact`
    removes secrets from a memory.
    """
    max_promotions, max_chars = limits
    before = _with_final_line_end(NEW_FILE_TITLE if text is None else text)
    unpromoted = remove_lines(before, existing)
    remaining = max_chars - len(unpromoted) - len(_block(block_heading(at), ()))
    present = _content_keys(before)
    promoted: list[Promotion] = []
    rejected: list[RejectedCandidate] = []
    for item in rankings:
        if len(promoted) >= max_promotions:
            rejected.append(
                RejectedCandidate(
                    item.candidate.memory,
                    item.score,
                    RejectionReason.SWEEP_LIMIT,
                    _SWEEP_LIMIT_MESSAGE,
                )
            )
            continue
        promotion = build_promotion(item, redact)
        content_key = _content_key(promotion.line)
        if rejection := _rejection(promotion, content_key in present, remaining, max_chars):
            rejected.append(RejectedCandidate(promotion.memory, promotion.score, *rejection))
            continue
        present.add(content_key)
        remaining -= len(promotion.line) + 1
        promoted.append(promotion)
    if not promoted:
        return MemoryFileUpdate(text or "", (), tuple(rejected), ())
    block = _block(block_heading(at), [item.line for item in promoted])
    base, evicted = _evict_oldest(before, existing, max_chars - len(block))
    return MemoryFileUpdate(base + block, tuple(promoted), tuple(rejected), tuple(evicted))


def _rejection(
    promotion: Promotion, is_present: bool, remaining: int, max_chars: int
) -> tuple[RejectionReason, str] | None:
    if is_present:
        return RejectionReason.ALREADY_PRESENT, "MEMORY.md already contains it"
    if len(promotion.line) + 1 > remaining:
        return (
            RejectionReason.FILE_FULL,
            f"MEMORY.md may grow to {max_chars} characters and is full",
        )
    return None


def _block(heading: str, lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in ("", heading, "", *lines))


def _with_final_line_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _content_key(line: str) -> tuple[str, ...]:
    """Normalized content of a line, independent of formatting."""
    text = unescape(_ESCAPE.sub("", _SCORE_SUFFIX.sub("", _BULLET.sub("", line))))
    signs = [
        character
        for character in _PUNCTUATION.findall(text)
        if category(character) in _SYMBOL_CATEGORIES or character in "#%"
    ]
    return (*tokenize(text), *signs, *_NEGATIVE.findall(text)) or (text.strip(),)


def _content_keys(text: str) -> set[tuple[str, ...]]:
    return {_content_key(line) for line in text.splitlines()}


def _evict_oldest(
    text: str, existing: Sequence[PromotedLine], max_chars: int
) -> tuple[str, list[PromotedLine]]:
    """Remove the oldest blocks until the text has at most `max_chars` characters."""
    evicted: list[PromotedLine] = []
    for heading in _headings_oldest_first(existing):
        if len(text) <= max_chars:
            break
        removed = [item for item in existing if item.heading == heading]
        text = remove_lines(text, removed)
        evicted += removed
    return text, evicted


def _headings_oldest_first(existing: Sequence[PromotedLine]) -> list[str]:
    ordered = sorted(existing, key=lambda item: (item.at, item.heading))
    return list(dict.fromkeys(item.heading for item in ordered))


def remove_lines(text: str, removed: Sequence[PromotedLine]) -> str:
    """Remove these lines, each once and only below its own heading.

    A block without remaining text is removed with its heading and blank lines.
    """
    result: list[str] = []
    for section in _split_sections(_split_lines(text)):
        lines = (
            [item.line for item in removed if item.heading == _strip_line_end(section[0])]
            if section
            else []
        )
        result += _remove_from_section(section, lines, result)
    return "".join(result)


def find_missing(text: str, existing: Sequence[PromotedLine]) -> list[PromotedLine]:
    """Recorded lines that the text lacks: a person removed or edited them."""
    lines = {_strip_line_end(line) for line in _split_lines(text)}
    return [item for item in existing if item.line not in lines or item.heading not in lines]


def _split_lines(text: str) -> list[str]:
    """Lines with their line ends, as in markdown."""
    result: list[str] = _LINE.findall(text)
    return result


def _strip_line_end(line: str) -> str:
    return line.rstrip("\r\n")


def _split_sections(lines: Sequence[str]) -> list[list[str]]:
    """Split before every heading of level 1 or 2."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if _HEADING.match(line):
            sections.append([])
        sections[-1].append(line)
    return sections


def _remove_from_section(section: list[str], lines: list[str], before: list[str]) -> list[str]:
    if not lines:
        return section
    heading, *body = section
    remaining: list[str] = []
    for line in body:
        if _strip_line_end(line) in lines:
            lines.remove(_strip_line_end(line))
        else:
            remaining.append(line)
    if len(remaining) == len(body) or any(_strip_line_end(line).strip() for line in remaining):
        return [heading, *remaining]
    if before and not _strip_line_end(before[-1]):
        before.pop()
    return remaining[1:]


def memory_ids_by_line(existing: Sequence[PromotedLine]) -> Mapping[tuple[str, str], str]:
    """Memory ids by (heading, line)."""
    return {(item.heading, item.line): item.memory for item in existing}
