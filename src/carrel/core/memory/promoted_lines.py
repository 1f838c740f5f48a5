"""What dreams write into MEMORY.md, and how it goes again: never a byte of what a person wrote.

A dream appends one block: a blank line, a heading, a blank line and one line for each memory. What
of a text was dreamed is told by the ledger alone, which has every heading and line as it was
written: a line that somebody has edited, moved elsewhere or written themselves is theirs.
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
from carrel.core.memory.promotion_score import Ranking, RejectedCandidate, RejectionReason
from carrel.core.overlay.placeholders import sanitised
from carrel.core.search.full_text import tokenize

MEMORY: Final = Path("MEMORY.md")
TITLE: Final = "# MEMORY.md\n"

_HEADING: Final = re.compile(r"#{1,2}(?:\s|\Z)")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_ENOUGH: Final = "others that score higher are as many as one sweep promotes"
_BULLET: Final = re.compile(r"\A\s*(?:[-*+>]|#+)\s+")
_ESCAPE: Final = re.compile(r"\\(?=[^\w\s])")
_MARK: Final = re.compile(r"[^\w\s|~]")
_SIGNS: Final = frozenset({"Sm", "Sc", "So"})
"""Of mathematics, of money and all other: what is told by them alone is told."""
_NEGATIVE: Final = re.compile(r"(?<![^\W_])-(?=[0-9])")
_NUMBERS: Final = re.compile(r"\s*_\(score=[0-9.]+, hits=[0-9]+, days=[0-9]+\)_\s*\Z")


class PromotedLine(Struct, frozen=True):
    """One line that a dream wrote and that nobody has taken away, as the ledger has it."""

    memory: str
    heading: str
    line: str
    at: TimestampMs


class Promotion(Struct, frozen=True):
    """A memory on its way into MEMORY.md."""

    memory: str
    score: float
    hits: int
    days: int
    line: str


class MemoryFileUpdate(Struct, frozen=True):
    """MEMORY.md as it is to become, and why of it some will not be there."""

    text: str
    promoted: tuple[Promotion, ...]
    rejected: tuple[RejectedCandidate, ...]
    evicted: tuple[PromotedLine, ...]


def stamp(at: TimestampMs) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def heading_of(at: TimestampMs) -> str:
    return f"## Dreamed {stamp(at)}"


def promotion_of(one: Ranking, admitted: Callable[[str], str] = str) -> Promotion:
    """One flat line, in which nothing of the memory acts as markdown."""
    tally = one.candidate.tally
    numbers = f"_(score={one.score:.2f}, hits={tally.hits}, days={tally.days})_"
    line = f"- {sanitised(admitted(one.candidate.content))} {numbers}"
    return Promotion(one.candidate.memory, one.score, tally.hits, tally.days, line)


def written(
    text: str | None,
    standing: Sequence[PromotedLine],
    good: Sequence[Ranking],
    at: TimestampMs,
    limits: tuple[int, int],
    admitted: Callable[[str], str] = str,
) -> MemoryFileUpdate:
    """Append what is new of the good ones, best first; the oldest blocks make room for it.

    ``limits`` are how many may be promoted at once, and how many characters the text may have;
    ``admitted`` is what may be written of a memory.
    """
    most, max_chars = limits
    before = _ended(TITLE if text is None else text)
    bare = without(before, standing)
    room = max_chars - len(bare) - len(_block(heading_of(at), ()))
    said = _said(before)
    promoted: list[Promotion] = []
    rejected: list[RejectedCandidate] = []
    for one in good:
        if len(promoted) >= most:
            rejected.append(
                RejectedCandidate(one.candidate.memory, one.score, RejectionReason.LIMIT, _ENOUGH)
            )
            continue
        promotion = promotion_of(one, admitted)
        meant = _meaning(promotion.line)
        if failed := _unfit(promotion, meant in said, room, max_chars):
            rejected.append(RejectedCandidate(promotion.memory, promotion.score, *failed))
            continue
        said.add(meant)
        room -= len(promotion.line) + 1
        promoted.append(promotion)
    if not promoted:
        return MemoryFileUpdate(text or "", (), tuple(rejected), ())
    block = _block(heading_of(at), [one.line for one in promoted])
    kept, evicted = _evict(before, standing, max_chars - len(block))
    return MemoryFileUpdate(kept + block, tuple(promoted), tuple(rejected), tuple(evicted))


def _unfit(
    promotion: Promotion, said: bool, room: int, max_chars: int
) -> tuple[RejectionReason, str] | None:
    if said:
        return RejectionReason.SAID, "MEMORY.md says it already"
    if len(promotion.line) + 1 > room:
        return (
            RejectionReason.ROOM,
            f"MEMORY.md may grow to {max_chars} characters, and has no room for it",
        )
    return None


def _block(heading: str, lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in ("", heading, "", *lines))


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _meaning(line: str) -> tuple[str, ...]:
    """What a line says, whatever it looks like: what two lines have in common that say the same."""
    said = unescape(_ESCAPE.sub("", _NUMBERS.sub("", _BULLET.sub("", line))))
    signs = [one for one in _MARK.findall(said) if category(one) in _SIGNS or one in "#%"]
    return (*tokenize(said), *signs, *_NEGATIVE.findall(said)) or (said.strip(),)


def _said(text: str) -> set[tuple[str, ...]]:
    return {_meaning(line) for line in text.splitlines()}


def _evict(
    text: str, standing: Sequence[PromotedLine], most: int
) -> tuple[str, list[PromotedLine]]:
    """Take the oldest blocks away until so many characters are left, or no block is."""
    evicted: list[PromotedLine] = []
    for heading in _oldest_first(standing):
        if len(text) <= most:
            break
        gone = [one for one in standing if one.heading == heading]
        text = without(text, gone)
        evicted += gone
    return text, evicted


def _oldest_first(standing: Sequence[PromotedLine]) -> list[str]:
    ordered = sorted(standing, key=lambda one: (one.at, one.heading))
    return list(dict.fromkeys(one.heading for one in ordered))


def without(text: str, gone: Sequence[PromotedLine]) -> str:
    """The text without these lines, each taken away once and only where it was dreamed.

    A block with nothing left goes whole, with its heading and the blank lines that it came with.
    """
    kept: list[str] = []
    for section in _sections(_lines(text)):
        wanted = [one.line for one in gone if one.heading == _bare(section[0])] if section else []
        kept += _section_without(section, wanted, kept)
    return "".join(kept)


def missing(text: str, standing: Sequence[PromotedLine]) -> list[PromotedLine]:
    """Those that the ledger has and the text has no more: a person has taken or changed them."""
    lines = {_bare(line) for line in _lines(text)}
    return [one for one in standing if one.line not in lines or one.heading not in lines]


def _lines(text: str) -> list[str]:
    """Lines as markdown knows them, with their ends."""
    found: list[str] = _LINE.findall(text)
    return found


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _sections(lines: Sequence[str]) -> list[list[str]]:
    """Cut before every heading of the first two levels."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if _HEADING.match(line):
            sections.append([])
        sections[-1].append(line)
    return sections


def _section_without(section: list[str], wanted: list[str], before: list[str]) -> list[str]:
    if not wanted:
        return section
    heading, *rest = section
    left: list[str] = []
    for line in rest:
        if _bare(line) in wanted:
            wanted.remove(_bare(line))
        else:
            left.append(line)
    if len(left) == len(rest) or any(_bare(line).strip() for line in left):
        return [heading, *left]
    if before and not _bare(before[-1]):
        before.pop()
    return left[1:]


def dreamed_by_line(standing: Sequence[PromotedLine]) -> Mapping[tuple[str, str], str]:
    """Which memory stands under a heading in a line."""
    return {(one.heading, one.line): one.memory for one in standing}
