"""The Name line of IDENTITY.md and its change when an agent is renamed.

Everything else in the file stays byte-identical.
"""

from __future__ import annotations

import re
from typing import Final

from carrel.core.agents.persona import field_values, find_field
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.markdown.fences import (
    BULLET_PATTERN,
    BYTE_ORDER_MARK,
    LINE_END,
    MarkdownLine,
    content_lines,
    detect_line_end,
    front_matter_end,
)
from carrel.core.markdown.labelled_lines import replace_value
from carrel.core.overlay.placeholders import sanitize_value
from carrel.core.text_validation import single_line

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
    line, value = find_field(file, _NAME), sanitize_value(name)
    if line is None:
        return _insert_name_line(file, value).encode()
    return replace_value(file, line.span, value).encode()


def parse_names(text: bytes) -> tuple[str, ...]:
    """Values of all Name lines.

    A caller who may not rename must not add another one either.
    """
    file = _decode(text)
    return () if file is None else field_values(file, _NAME)


def parse_agent_name(text: str) -> str:
    """Parse the name of an agent: one line that IDENTITY.md can show.

    Raises ValidationError, also for a name that would read back as empty there, as quote marks do.
    """
    name = single_line(text, "name")
    if not parse_names(rename_identity(b"", name)):
        raise ValidationError("name must have more than quote marks or a text in parentheses")
    return name


def uses_agent_name(text: bytes) -> bool:
    """Whether the name is read from the placeholder, so that a rename needs no edit."""
    return "{{AGENT_NAME}}" in next(iter(parse_names(text)), "")


def _decode(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _insert_name_line(file: str, value: str) -> str:
    """Insert a Name line after the first heading, or at the top below front matter."""
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
    for line in content_lines(file):
        underlined = previous and previous.text.strip() and previous.next_start == line.start
        if not line.quote_depth and (
            _HEADING.match(line.text) or (underlined and _UNDERLINE.match(line.text))
        ):
            return line.next_start
        previous = line
    return front_matter_end(file) or len(BYTE_ORDER_MARK) * file.startswith(BYTE_ORDER_MARK)
