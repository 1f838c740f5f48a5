"""The Name line of IDENTITY.md and its change when an agent is renamed.

Everything else in the file stays byte-identical. Lines in code fences are ignored.
"""

from __future__ import annotations

import re
from typing import Final

from carrel.core.agents import persona
from carrel.core.identifiers import Path
from carrel.core.markdown import labelled_lines
from carrel.core.markdown.fences import (
    BULLET_PATTERN,
    BYTE_ORDER_MARK,
    LINE_END,
    MarkdownLine,
    detect_line_end,
    lines_outside_fences,
)
from carrel.core.overlay.placeholders import sanitize_value

IDENTITY_PATH: Final = Path("IDENTITY.md")
_NAME: Final = "name"
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=++|-++)[ \t]*+\Z")
_BLOCK_START: Final = re.compile(
    rf" {{0,3}}(?:{BULLET_PATTERN}[ \t]|#{{1,6}}[ \t]|>|`{{3}}|~{{3}}|\Z)"
)


def rename_identity(text: bytes, name: str) -> bytes:
    """Set the name in the Name line, which is added if absent.

    Files that are not UTF-8 are unchanged.
    """
    file = _decode(text)
    if file is None:
        return text
    span, value = labelled_lines.find_value(file, _NAME), sanitize_value(name)
    if span is None:
        return _insert_name_line(file, value).encode()
    return labelled_lines.replace_value(file, span, value).encode()


def parse_name(text: bytes) -> str | None:
    """Value of the Name line; None if there is none."""
    file = _decode(text)
    span = None if file is None else labelled_lines.find_value(file, _NAME)
    return file[span.start : span.end] if file is not None and span else None


def parse_names(text: bytes) -> tuple[str, ...]:
    """Values of all Name lines.

    A caller who may not rename must not add another one either.

    Includes lines that only the prompt's persona parser recognizes.
    """
    file = _decode(text)
    if file is None:
        return ()
    labelled = tuple(
        file[span.start : span.end] for span in labelled_lines.find_values(file, _NAME)
    )
    return (*labelled, *persona.field_values(file, _NAME))


def uses_agent_name(text: bytes) -> bool:
    """Whether the Name line has the placeholder, so that a rename needs no edit."""
    return "{{AGENT_NAME}}" in (parse_name(text) or "")


def _decode(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _insert_name_line(file: str, value: str) -> str:
    """Insert a Name line after the first heading, or at the top."""
    position = _heading_end(file)
    before, after = file[:position], file[position:]
    end = detect_line_end(file)
    line = f"- **Name:** {value}{end}"
    if position > len(BYTE_ORDER_MARK) and not before.endswith(("\r", "\n")):
        line = end + line.removesuffix(end)
    next_line = LINE_END.split(after, maxsplit=1)[0]
    gap = "" if _BLOCK_START.match(next_line) else end
    return f"{before}{line}{gap}{after}"


def _heading_end(file: str) -> int:
    previous: MarkdownLine | None = None
    for line in lines_outside_fences(file):
        underlined = previous and previous.text.strip() and previous.next_start == line.start
        if not line.quote_depth and (
            _HEADING.match(line.text) or (underlined and _UNDERLINE.match(line.text))
        ):
            return line.next_start
        previous = line
    return len(BYTE_ORDER_MARK) if file.startswith(BYTE_ORDER_MARK) else 0
