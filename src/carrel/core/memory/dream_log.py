"""DREAMS.md, where every dream is noted, and MEMORY-INDEX.json, which tells what MEMORY.md holds.

RFC 0059 names the index and leaves its form open; RFC 0062's manifest gives it its first fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.markdown.fences import END, outside_fences
from carrel.core.memory.promoted_lines import MEMORY, PromotedLine, Promotion, stamp

DREAMS: Final = Path("DREAMS.md")
INDEX: Final = Path("MEMORY-INDEX.json")
INDEX_TYPE: Final = "application/json"
LONGEST: Final = 40_000
"""Characters of the diary; the oldest nights make room for new ones."""

_TITLE: Final = "# DREAMS.md — Dream Diary\n"
_NIGHT: Final = re.compile(
    r"(?m)^\n?## Deep Sleep [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC$"
)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_BULLET: Final = re.compile(r" {0,3}[-*+][ \t]+(.*\S)")


def append_dream(
    text: str | None, at: TimestampMs, counts: tuple[int, int], promoted: Sequence[Promotion]
) -> str:
    """The diary with one more night; ``counts`` are candidates and those promoted before."""
    candidates, skipped = counts
    lines = [
        *("", f"## Deep Sleep {stamp(at)}", ""),
        f"- candidates: {candidates}",
        f"- promoted: {len(promoted)}",
        f"- skipped (already promoted): {skipped}",
    ]
    if promoted:
        lines += ["", "### Promoted", "", *map(diary_line, promoted)]
    before = _TITLE if text is None else text if text.endswith("\n") or not text else text + "\n"
    return _shortened(before + "".join(f"{line}\n" for line in lines))


def diary_line(promotion: Promotion) -> str:
    said = promotion.line.removeprefix("- ").rpartition(" _(score=")[0]
    return f"- {said} — score {promotion.score:.2f}, hits {promotion.hits}"


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    nights = [found.start() for found in _NIGHT.finditer(text)]
    for later in nights[1:]:
        if len(text) - (later - nights[0]) <= LONGEST:
            return text[: nights[0]] + text[later:]
    return text[: nights[0]] + text[nights[-1] :] if nights else text


def without_line(text: str, line: str) -> str:
    """The diary without one of its lines."""
    return re.sub(rf"(?m)^{re.escape(line)}\n", "", text, count=1)


def index_of(text: str, standing: Sequence[PromotedLine], at: TimestampMs) -> str:
    """The index of a MEMORY.md: its sections, and of each point its digest and where it is from."""
    dreamed = {(one.heading, one.line): one.memory for one in standing}
    sections: list[dict[str, Any]] = []
    number, at_line = 1, 0
    for line in outside_fences(text):
        number += len(END.findall(text, at_line, line.start))
        at_line = line.start
        if found := _HEADING.match(line.text):
            section = {"title": found[2] or "", "level": len(found[1]), "line": number}
            sections.append({**section, "heading": line.text, "entries": []})
        elif bullet := _BULLET.match(line.text):
            if not sections:
                sections.append({"title": "", "level": 0, "line": 1, "heading": "", "entries": []})
            memory = dreamed.get((sections[-1]["heading"], line.text))
            digest = sha256(bullet[1].encode()).hexdigest()
            entry = {"line": number, "sha256": digest}
            sections[-1]["entries"].append({**entry, "memoryId": memory} if memory else entry)
    for section in sections:
        del section["heading"]
    return _document(text, sections, at)


def _document(text: str, sections: Sequence[Mapping[str, Any]], at: TimestampMs) -> str:
    told = {
        "version": 1,
        "file": MEMORY.text,
        "archiveChecksum": f"sha256:{sha256(text.encode()).hexdigest()}",
        "entryCount": sum(len(section["entries"]) for section in sections),
        "updatedAt": datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds"),
        "sections": sections,
    }
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def same_index(one: str | None, other: str) -> bool:
    """Whether two differ in nothing but when they were made."""
    return one is not None and _timeless(one) == _timeless(other)


def _timeless(index: str) -> str:
    return re.sub(r'(?m)^ "updatedAt": .*$', "", index)
