"""Three-way merge of texts by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from msgspec import Struct

MAX_MERGED_LINES: Final = 4_000
"""Matching lines is quadratic, so longer texts conflict as a whole."""
MARKERS: Final = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
"""Beginnings of the lines that mark a conflict: ours, base, theirs and the end."""


class MergeLabels(Struct, frozen=True):
    """Names of the three texts in the marks of a conflict."""

    ours: str
    base: str
    theirs: str


class MergedText(Struct, frozen=True):
    text: str
    conflicts: int
    """Places where both sides changed the same lines; each is marked in the text."""


class _Region(NamedTuple):
    """Lines between two runs that are equal in all texts."""

    base: list[str]
    ours: list[str]
    theirs: list[str]


class _Match(NamedTuple):
    """Lines that are equal in all three texts."""

    base: int
    ours: int
    theirs: int
    length: int


def merge_texts(base: str, ours: str, theirs: str, labels: MergeLabels) -> MergedText:
    """Merge what two texts changed in a third, by lines.

    Lines that both changed differently are a conflict: the result has all three, between marks.
    """
    texts = base.split("\n"), ours.split("\n"), theirs.split("\n")
    merged: list[str] = []
    conflicts, previous = 0, _Match(0, 0, 0, 0)
    for match in _common_matches(*texts):
        region = _Region(
            *(
                text[start + previous.length : end]
                for text, start, end in zip(texts, previous, match, strict=False)
            )
        )
        side = _choose(region)
        conflicts += side is None
        merged += _mark(region, labels) if side is None else side
        merged += texts[0][match.base : match.base + match.length]
        previous = match
    return MergedText("\n".join(merged), conflicts)


def has_conflict_marks(text: str) -> bool:
    """Whether a text still has the marks of an unresolved conflict."""
    lines = text.split("\n")
    return any(line.startswith(MARKERS[0]) for line in lines) and any(
        line.startswith(MARKERS[3]) for line in lines
    )


def _choose(region: _Region) -> list[str] | None:
    """Lines of the side that changed; None if both changed them differently."""
    if region.theirs in (region.base, region.ours):
        return region.ours
    return region.theirs if region.ours == region.base else None


def _mark(region: _Region, labels: MergeLabels) -> Iterator[str]:
    before, original, between, after = MARKERS
    yield f"{before}{labels.ours}"
    yield from region.ours
    yield f"{original}{labels.base}"
    yield from region.base
    yield between
    yield from region.theirs
    yield f"{after}{labels.theirs}"


def _common_matches(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[_Match]:
    """Runs of lines that both sides kept, in order, and an empty one at the end."""
    ours_blocks, theirs_blocks = _matching_blocks(base, ours), _matching_blocks(base, theirs)
    i = j = 0
    while i < len(ours_blocks) and j < len(theirs_blocks):
        ours_base, ours_start, ours_length = ours_blocks[i]
        theirs_base, theirs_start, theirs_length = theirs_blocks[j]
        start = max(ours_base, theirs_base)
        ours_end, theirs_end = ours_base + ours_length, theirs_base + theirs_length
        length = min(ours_end, theirs_end) - start
        if length > 0:
            ours_match = ours_start + start - ours_base
            yield _Match(start, ours_match, theirs_start + start - theirs_base, length)
        if ours_end <= theirs_end:
            i += 1
        else:
            j += 1
    yield _Match(len(base), len(ours), len(theirs), 0)


def _matching_blocks(base: Sequence[str], other: Sequence[str]) -> list[tuple[int, int, int]]:
    """Equal runs as positions in both texts and their length."""
    head = _common_length(base, other)
    tail = _common_length(base[head:][::-1], other[head:][::-1])
    middle, changed = base[head : len(base) - tail], other[head : len(other) - tail]
    blocks = [(0, 0, head)]
    if max(len(middle), len(changed)) <= MAX_MERGED_LINES:
        matcher = SequenceMatcher(None, middle, changed)
        blocks += [
            (head + block.a, head + block.b, block.size) for block in matcher.get_matching_blocks()
        ]
    blocks.append((len(base) - tail, len(other) - tail, tail))
    return [block for block in blocks if block[2]]


def _common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Number of equal lines at the beginning of both."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))
