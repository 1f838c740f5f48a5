"""Sections of MEMORY.md and their summary for the knowledge tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.markdown.fences import lines_outside_fences

MAX_SECTIONS: Final = 50
MAX_BULLETS: Final = 10
MAX_SUMMARY_BYTES: Final = 6144
"""Size of the whole summary as JSON."""

_ENVELOPE_BYTES: Final = 160
"""Reserved for the JSON around the sections."""


class Section(Struct, frozen=True):
    heading: str
    bullets: tuple[str, ...]
    extra_bullets: int | None = None
    """Number of omitted bullets."""


class KnowledgeSummary(Struct, frozen=True):
    sections: tuple[Section, ...]
    truncated: bool
    """Whether matching content was omitted."""


def parse_sections(text: str) -> tuple[Section, ...]:
    """Every `## ` heading with its unindented bullets, in order."""
    parsed: list[tuple[str, list[str]]] = []
    for line in lines_outside_fences(text):
        stripped = line.text.rstrip()
        if line.quote_depth:
            continue
        if stripped.startswith("## "):
            parsed.append((stripped[3:].strip(), []))
        elif (
            parsed and stripped.startswith(("- ", "* ", "+ ")) and (bullet := stripped[2:].strip())
        ):
            parsed[-1][1].append(bullet)
    return tuple(Section(heading, tuple(bullets)) for heading, bullets in parsed)


def summarize_sections(
    candidates: Iterable[Section], heading_filter: str = "", limit: int = 20
) -> KnowledgeSummary:
    """Sections whose heading contains `heading_filter`, shortened to fit the limits."""
    matching = [
        section
        for section in candidates
        if heading_filter.strip().casefold() in section.heading.casefold()
    ]
    result: list[Section] = []
    remaining = MAX_SUMMARY_BYTES - _ENVELOPE_BYTES
    for section in matching[: min(limit, MAX_SECTIONS)]:
        shortened = _fit_section(_limit_bullets(section), remaining)
        if shortened is None:
            break
        result.append(shortened)
        remaining -= _encoded_size(shortened)
    return KnowledgeSummary(
        tuple(result), truncated=len(result) < len(matching) or _has_omissions(result, matching)
    )


def _has_omissions(result: Sequence[Section], matching: Sequence[Section]) -> bool:
    return any(
        shortened.bullets != section.bullets
        for shortened, section in zip(result, matching, strict=False)
    )


def _limit_bullets(section: Section) -> Section:
    extra = len(section.bullets) - MAX_BULLETS
    if extra <= 0:
        return section
    return Section(section.heading, section.bullets[:MAX_BULLETS], extra)


def _fit_section(section: Section, max_bytes: int) -> Section | None:
    """Drop bullets until the section fits; None if not even one bullet fits."""
    while _encoded_size(section) > max_bytes:
        if not section.bullets or (
            len(section.bullets) == 1 and max_bytes < MAX_SUMMARY_BYTES - _ENVELOPE_BYTES
        ):
            return None
        if len(section.bullets) == 1:
            return _truncate_bullet(section, max_bytes)
        extra = (section.extra_bullets or 0) + 1
        section = replace(section, bullets=section.bullets[:-1], extra_bullets=extra)
    return section


def _truncate_bullet(section: Section, max_bytes: int) -> Section | None:
    """Shorten the only bullet of a section that exceeds the whole summary."""
    [bullet], heading = section.bullets, section.heading[:200]
    while bullet:
        bullet = bullet[: len(bullet) * 3 // 4]
        candidate = Section(heading, (bullet + "…",), section.extra_bullets)
        if _encoded_size(candidate) <= max_bytes:
            return candidate
    return None


def _encoded_size(section: Section) -> int:
    fields = {"heading": section.heading, "bullets": section.bullets}
    encoded = json.dumps({**fields, "extra_bullets": section.extra_bullets}, ensure_ascii=False)
    return len(encoded.encode(errors="surrogatepass")) + 1
