"""The map in an agent's AGENTS.md: one marked block that tells its files and its peers.

Everything outside of the block belongs to whoever wrote it, and stays to the byte. What stands in
the block was taken from files that others wrote, so that each line of it is only ever text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path
from carrel.core.markdown.fences import BULLET, MARK, line_end, outside_fences
from carrel.core.markdown.labelled_lines import ValueSpan
from carrel.core.overlay.placeholders import TOKENS, sanitised

AGENTS: Final = Path("AGENTS.md")
OPENING: Final = "<!-- carrel:map -->"
CLOSING: Final = "<!-- /carrel:map -->"
TITLE: Final = "# Agents\n"
"""What the file begins with where there was none."""

MOST_FILES: Final = 500
MOST_PEERS: Final = 200
_DEEPEST: Final = 6
"""Folders that are told apart; what lies deeper stands on one line with the rest of its path."""
_LONGEST: Final = 120
_LOOKED_AT: Final = 16 * 1024
"""Characters of a file among which to find what it is about."""

_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*\Z")
_ITEM: Final = re.compile(rf" {{0,3}}{BULLET}[ \t]+")
_SENTENCE: Final = re.compile(r".*?[.!?](?=[ \t]|\Z)")
_TOKEN: Final = re.compile(r"\{\{(" + "|".join(TOKENS) + r")\}\}")
_RULE: Final = re.compile(r"[\s=*_#-]*")


_PRIVATE: Final = ("notes/", "memory/")
_PRIVATE_FILES: Final = frozenset({"user.md", "memory.md", "dreams.md", "memory-index.json"})


class MapEntry(Struct, frozen=True):
    """One file, and what it is about."""

    path: Path
    about: str = ""


class PeerAgent(Struct, frozen=True):
    """Another agent of the tenant."""

    slug: str
    name: str


def summarize(text: bytes) -> str:
    """The first heading of a file, or its first sentence, whichever comes first; else nothing."""
    try:
        file = _without_comments(text.decode()[:_LOOKED_AT])
    except UnicodeDecodeError:
        return ""
    for line in _said(file):
        heading = _HEADING.match(line)
        plain = heading["text"] if heading else _ITEM.sub("", line, count=1).strip()
        sentence = None if heading else _SENTENCE.match(plain)
        if plain := _readable(sentence[0] if sentence else plain):
            return plain
    return ""


def private(path: Path) -> bool:
    """Whether what an agent keeps there is for itself alone: its map is told in shared sessions."""
    text = path.text.casefold()
    return text in _PRIVATE_FILES or text.startswith(_PRIVATE)


def _said(file: str) -> Iterator[str]:
    """The lines that say something, without what some files carry before their text."""
    texts = [line.text for line in outside_fences(file.removeprefix(MARK).lstrip("\r\n"))]
    if texts and texts[0].rstrip() == "---":
        header = len(list(takewhile(lambda text: text.rstrip() != "---", texts[1:])))
        texts = texts[header + 2 :] if header + 1 < len(texts) else texts
    return (text[: 4 * _LONGEST] for text in texts if not _RULE.fullmatch(text))


def _without_comments(text: str) -> str:
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return "".join((*kept, text[at:]))


def _readable(text: str) -> str:
    """A placeholder is told by its words: a map is not for names of people."""
    plain = _TOKEN.sub(lambda token: token[1].lower().replace("_", " "), text).strip()
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1].rstrip() + "…"


def allows(patterns: Sequence[object], slug: str) -> bool:
    """Whether an agent may delegate to another: by its slug, with ``*`` for any letters.

    No pattern at all lets it delegate to everybody.
    """
    words = [pattern for pattern in patterns if isinstance(pattern, str)]
    return not patterns or any(_fits(pattern, slug) for pattern in words)


def _fits(pattern: str, slug: str) -> bool:
    """Piece by piece from the left, so that no pattern takes long."""
    first, *rest = pattern.split("*")
    if not rest:
        return slug == pattern
    last = rest.pop()
    if not slug.startswith(first) or not slug.endswith(last):
        return False
    at, end = len(first), len(slug) - len(last)
    for piece in rest:
        found = slug.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def render_map(places: Sequence[MapEntry], peers: Sequence[PeerAgent]) -> str:
    """The block itself, from marker to marker, with no line end after it."""
    lines = [OPENING, "", "## Files", "", *_tree(places[:MOST_FILES])]
    lines += _more(len(places) - MOST_FILES, "files")
    if peers:
        told = [f"- {sanitised(peer.slug)}: {sanitised(peer.name)}" for peer in peers[:MOST_PEERS]]
        lines += ["", "## Peers", "", *told, *_more(len(peers) - MOST_PEERS, "peers")]
    return "\n".join([*lines, "", CLOSING])


def _more(count: int, what: str) -> list[str]:
    return [f"- … and {count} more {what}"] if count > 0 else []


def _tree(places: Iterable[MapEntry]) -> Iterator[str]:
    """A line for every folder as it is entered, and one for every file."""
    inside: list[str] = []
    for place in places:
        parts = place.path.text.split("/")
        folders = parts[:-1][:_DEEPEST]
        for depth in range(_alike(inside, folders), len(folders)):
            yield f"{'  ' * depth}- {sanitised(folders[depth])}/"
        inside = folders
        name = sanitised("/".join(parts[len(folders) :]))
        told = f": {sanitised(place.about)}" if place.about else ""
        yield f"{'  ' * len(folders)}- {name}{told}"


def _alike(some: Sequence[str], others: Sequence[str]) -> int:
    """How many of the first are the same."""
    pairs = zip(some, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def replace_map(file: str, block: str) -> str:
    """The file with this block in place of the one it has, else after all that it says.

    In a fence that is never closed the block would be code, so that it then comes first.
    """
    block = block.replace("\n", line_end(file))
    found = _block(file)
    if found is not None:
        return file[: found.start] + block + file[found.end :]
    end = line_end(file)
    gap = "" if not file or file == MARK else end if file.endswith(end) else end * 2
    after = f"{file}{gap}{block}{end}"
    if _block(after) is not None:
        return after
    mark = MARK if file.startswith(MARK) else ""
    return f"{mark}{block}{end}{end}{file.removeprefix(MARK)}"


def outside(file: str) -> str:
    """The file without its block."""
    found = _block(file)
    return file if found is None else file[: found.start] + file[found.end :]


def _block(file: str) -> ValueSpan | None:
    """From the first closing marker back to the opening that is nearest to it."""
    if OPENING not in file or CLOSING not in file:
        return None
    opened: int | None = None
    for line in outside_fences(file):
        marker = "" if line.depth else line.text.rstrip(" \t")
        if marker == OPENING:
            opened = line.start
        elif marker == CLOSING and opened is not None:
            return ValueSpan(opened, line.end)
    return None
