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
from msgspec.structs import replace

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.memory.promotion_score import (
    DAY_MS,
    RankedCandidate,
    RejectedCandidate,
    RejectionReason,
)
from carrel.core.overlay.placeholders import disable_tokens, flatten_text
from carrel.core.search.full_text import tokenize

MEMORY_PATH: Final = Path("MEMORY.md")
NEW_FILE_TITLE: Final = "# MEMORY.md\n"
HALF_LIFE_DAYS: Final = 90
"""Days after which a promoted line has half of its score when lines are evicted."""

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
    score: float = 0.0

    def strength(self, now: TimestampMs) -> float:
        """Score, halved for every HALF_LIFE_DAYS since the promotion."""
        return float(self.score * 2 ** (-max(0, now - self.at) / DAY_MS / HALF_LIFE_DAYS))


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
    """Promotion of a memory, with its line."""
    stats = ranking.candidate.stats
    promotion = Promotion(ranking.candidate.memory, ranking.score, stats.hits, stats.days, "")
    return replace(promotion, line=format_line(redact(ranking.candidate.content), promotion))


def format_line(content: str, promotion: Promotion) -> str:
    """One line: the text, then the numbers of the promotion.

    The text is not escaped, since agents read MEMORY.md as it is; only placeholders are disabled.
    """
    numbers = f"score={promotion.score:.2f}, hits={promotion.hits}, days={promotion.days}"
    return f"- {disable_tokens(flatten_text(content))} _({numbers})_"


def write_promotions(
    text: str | None,
    existing: Sequence[PromotedLine],
    rankings: Sequence[RankedCandidate],
    at: TimestampMs,
    limits: tuple[int, int],
    redact: Callable[[str], str] = str,
) -> MemoryFileUpdate:
    """Append new memories, best first; evict weaker lines if needed.

    `limits` are the maximum number of promotions and the maximum length of the text; `redact`
    removes secrets from a memory.
    """
    max_promotions, max_chars = limits
    before = _with_final_line_end(NEW_FILE_TITLE if text is None else text)
    block = _PromotedBlock(before, existing, at, max_chars)
    present = _content_keys(before)
    rejected: list[RejectedCandidate] = []
    for item in rankings:
        promotion = build_promotion(item, redact)
        content_key = _content_key(promotion.line)
        if len(block.promotions) >= max_promotions:
            rejection = (RejectionReason.SWEEP_LIMIT, _SWEEP_LIMIT_MESSAGE)
        elif content_key in present:
            rejection = (RejectionReason.ALREADY_PRESENT, "MEMORY.md already contains it")
        elif not block.add(promotion):
            message = f"MEMORY.md may grow to {max_chars} characters and has no weaker line"
            rejection = (RejectionReason.FILE_FULL, message)
        else:
            present.add(content_key)
            continue
        rejected.append(RejectedCandidate(promotion.memory, promotion.score, *rejection))
    if not block.promotions:
        return MemoryFileUpdate(text or "", (), tuple(rejected), ())
    rejected += [_eviction(line, at) for line in block.evicted]
    return MemoryFileUpdate(
        block.text, tuple(block.promotions), tuple(rejected), tuple(block.evicted)
    )


class _PromotedBlock:
    """A new block of lines, for which weaker lines are evicted."""

    def __init__(
        self, before: str, existing: Sequence[PromotedLine], at: TimestampMs, max_chars: int
    ) -> None:
        self._before, self._at, self._max_chars = before, at, max_chars
        self._weakest_first = sorted(
            existing, key=lambda line: (line.strength(at), line.at, line.memory)
        )
        self.promotions: list[Promotion] = []
        self.evicted: list[PromotedLine] = []

    @property
    def text(self) -> str:
        lines = [promotion.line for promotion in self.promotions]
        return remove_lines(self._before, self.evicted) + _block(block_heading(self._at), lines)

    def add(self, promotion: Promotion) -> bool:
        """Add a line, or nothing if it does not fit in place of weaker ones."""
        evicted = list(self.evicted)
        self.promotions.append(promotion)
        for line in self._weakest_first[len(evicted) :]:
            if len(self.text) <= self._max_chars or line.strength(self._at) >= promotion.score:
                break
            self.evicted.append(line)
        if len(self.text) <= self._max_chars:
            return True
        self.promotions.pop()
        self.evicted = evicted
        return False


def _eviction(line: PromotedLine, now: TimestampMs) -> RejectedCandidate:
    days = max(0, now - line.at) // DAY_MS
    message = f"score {line.score:.2f}, promoted {days} days ago; stronger lines took its place"
    return RejectedCandidate(line.memory, line.score, RejectionReason.EVICTED, message)


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


def replace_line(text: str, old: PromotedLine, line: str) -> str:
    """Replace a line below its own heading; the text is unchanged if it is not there."""
    result: list[str] = []
    is_replaced = False
    for section in _split_sections(_split_lines(text)):
        for section_line in section:
            if (
                not is_replaced
                and _strip_line_end(section[0]) == old.heading
                and _strip_line_end(section_line) == old.line
            ):
                is_replaced = True
                result.append(line + section_line[len(old.line) :])
            else:
                result.append(section_line)
    return "".join(result)


def remove_lines(text: str, removed: Sequence[PromotedLine]) -> str:
    """Remove these lines, section_line once and only below its own heading.

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
