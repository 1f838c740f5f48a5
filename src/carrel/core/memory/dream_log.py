"""DREAMS.md, the log of dreams, and MEMORY-INDEX.json, the index of MEMORY.md.

RFC 0059 names the index without defining its format; the first fields follow RFC 0062's manifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.markdown.fences import LINE_END, lines_outside_fences
from carrel.core.memory.promoted_lines import MEMORY_PATH, PromotedLine, Promotion, format_timestamp

DREAMS_PATH: Final = Path("DREAMS.md")
INDEX_PATH: Final = Path("MEMORY-INDEX.json")
INDEX_TYPE: Final = "application/json"
MAX_LOG_LENGTH: Final = 40_000
"""Characters of the log; the oldest dreams are dropped."""

_TITLE: Final = "# DREAMS.md — Dream Diary\n"
_DREAM_HEADING: Final = re.compile(
    r"(?m)^\n?## Deep Sleep [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC$"
)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_BULLET: Final = re.compile(r" {0,3}[-*+][ \t]+(.*\S)")


def append_dream(
    text: str | None, at: TimestampMs, counts: tuple[int, int], promoted: Sequence[Promotion]
) -> str:
    """Append a dream to the log; `counts` are candidates and memories promoted before."""
    candidates, skipped = counts
    lines = [
        *("", f"## Deep Sleep {format_timestamp(at)}", ""),
        f"- candidates: {candidates}",
        f"- promoted: {len(promoted)}",
        f"- skipped (already promoted): {skipped}",
    ]
    if promoted:
        lines += ["", "### Promoted", "", *map(log_line, promoted)]
    before = _TITLE if text is None else text if text.endswith("\n") or not text else text + "\n"
    return _drop_oldest(before + "".join(f"{line}\n" for line in lines))


def log_line(promotion: Promotion) -> str:
    content = promotion.line.removeprefix("- ").rpartition(" _(score=")[0]
    return f"- {content} — score {promotion.score:.2f}, hits {promotion.hits}"


def _drop_oldest(text: str) -> str:
    if len(text) <= MAX_LOG_LENGTH:
        return text
    starts = [match.start() for match in _DREAM_HEADING.finditer(text)]
    for start in starts[1:]:
        if len(text) - (start - starts[0]) <= MAX_LOG_LENGTH:
            return text[: starts[0]] + text[start:]
    return text[: starts[0]] + text[starts[-1] :] if starts else text


def remove_line(text: str, line: str) -> str:
    """Remove one line from the log."""
    return re.sub(rf"(?m)^{re.escape(line)}\n", "", text, count=1)


def build_index(text: str, promoted: Sequence[PromotedLine], at: TimestampMs) -> str:
    """Index of MEMORY.md: sections, and digest and source memory of each bullet."""
    memory_ids = {
        (promoted_line.heading, promoted_line.line): promoted_line.memory
        for promoted_line in promoted
    }
    sections: list[dict[str, Any]] = []
    line_number, position = 1, 0
    for line in lines_outside_fences(text):
        line_number += len(LINE_END.findall(text, position, line.start))
        position = line.start
        if match := _HEADING.match(line.text):
            section = {"title": match[2] or "", "level": len(match[1]), "line": line_number}
            sections.append({**section, "heading": line.text, "entries": []})
        elif bullet := _BULLET.match(line.text):
            if not sections:
                sections.append({"title": "", "level": 0, "line": 1, "heading": "", "entries": []})
            memory = memory_ids.get((sections[-1]["heading"], line.text))
            digest = sha256(bullet[1].encode()).hexdigest()
            entry = {"line": line_number, "sha256": digest}
            sections[-1]["entries"].append({**entry, "memoryId": memory} if memory else entry)
    for section in sections:
        del section["heading"]
    return _encode_index(text, sections, at)


def _encode_index(text: str, sections: Sequence[Mapping[str, Any]], at: TimestampMs) -> str:
    document = {
        "version": 1,
        "file": MEMORY_PATH.text,
        "archiveChecksum": f"sha256:{sha256(text.encode()).hexdigest()}",
        "entryCount": sum(len(section["entries"]) for section in sections),
        "updatedAt": datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds"),
        "sections": sections,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def same_index(first: str | None, second: str) -> bool:
    """Whether two indexes differ only in their timestamp."""
    return first is not None and _without_timestamp(first) == _without_timestamp(second)


def _without_timestamp(index: str) -> str:
    return re.sub(r'(?m)^ "updatedAt": .*$', "", index)
