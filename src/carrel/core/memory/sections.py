"""What MEMORY.md says, by its sections, and how much of it is told at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.markdown.fences import outside_fences

MOST_SECTIONS: Final = 50
MOST_BULLETS: Final = 10
MOST_BYTES: Final = 6144
"""Of all that is told, as JSON."""

_ROOM: Final = 160
"""Bytes for what stands around the sections: whose they are, too."""


class Section(Struct, frozen=True):
    heading: str
    bullets: tuple[str, ...]
    extra_bullets: int | None = None
    """How many more there are."""


class KnowledgeSummary(Struct, frozen=True):
    sections: tuple[Section, ...]
    truncated: bool
    """Whether there is more that was asked for."""


def sections(text: str) -> tuple[Section, ...]:
    """Every `## ` heading with the bullets at the margin beneath it, in the order of the file."""
    found: list[tuple[str, list[str]]] = []
    for line in outside_fences(text):
        said = line.text.rstrip()
        if line.depth:
            continue
        if said.startswith("## "):
            found.append((said[3:].strip(), []))
        elif found and said.startswith(("- ", "* ", "+ ")) and (bullet := said[2:].strip()):
            found[-1][1].append(bullet)
    return tuple(Section(heading, tuple(bullets)) for heading, bullets in found)


def known(all: Iterable[Section], wanted: str = "", limit: int = 20) -> KnowledgeSummary:
    """The sections whose heading has this in it, whole where they fit, else what fits of them."""
    asked = [section for section in all if wanted.strip().casefold() in section.heading.casefold()]
    told: list[Section] = []
    room = MOST_BYTES - _ROOM
    for section in asked[: min(limit, MOST_SECTIONS)]:
        shown = _fitting(_shortened(section), room)
        if shown is None:
            break
        told.append(shown)
        room -= _size(shown)
    return KnowledgeSummary(tuple(told), truncated=len(told) < len(asked) or _any_left(told, asked))


def _any_left(told: Sequence[Section], asked: Sequence[Section]) -> bool:
    return any(shown.bullets != whole.bullets for shown, whole in zip(told, asked, strict=False))


def _shortened(section: Section) -> Section:
    more = len(section.bullets) - MOST_BULLETS
    if more <= 0:
        return section
    return Section(section.heading, section.bullets[:MOST_BULLETS], more)


def _fitting(section: Section, room: int) -> Section | None:
    """As many of its bullets as there is room for; None where not even one fits."""
    while _size(section) > room:
        if not section.bullets or (len(section.bullets) == 1 and room < MOST_BYTES - _ROOM):
            return None
        if len(section.bullets) == 1:
            return _cut(section, room)
        more = (section.extra_bullets or 0) + 1
        section = replace(section, bullets=section.bullets[:-1], extra_bullets=more)
    return section


def _cut(section: Section, room: int) -> Section | None:
    """A section whose only bullet is too long for any answer: the beginning of it."""
    [bullet], heading = section.bullets, section.heading[:200]
    while bullet:
        bullet = bullet[: len(bullet) * 3 // 4]
        shown = Section(heading, (bullet + "…",), section.extra_bullets)
        if _size(shown) <= room:
            return shown
    return None


def _size(section: Section) -> int:
    told = {"heading": section.heading, "bullets": section.bullets}
    written = json.dumps({**told, "extra_bullets": section.extra_bullets}, ensure_ascii=False)
    return len(written.encode(errors="surrogatepass")) + 1
