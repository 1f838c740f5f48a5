"""The line of an IDENTITY.md that says what the agent is called, and giving it another name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from carrel.core.placeholders import sanitised

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_FENCE: Final = re.compile(r"(?:[ ]{0,3}>[ ]?)*[ ]{0,3}(?P<marks>`{3,}|~{3,})(?P<rest>.*)")
_NAME: Final = re.compile(
    r"(?P<label>\ufeff?(?:[ ]{0,3}>[ ]?)*[ ]{0,3}(?:[-*+][ \t]+)?"
    r"(?:\*\*name:\*\*|\*\*name\*\*[ \t]*:|__name:__|__name__[ \t]*:|name[ \t]*:))"
    r"(?P<value>.*?)(?P<note>[ \t]*<!--.*-->)?[ \t]*",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"\ufeff?[ ]{0,3}#{1,6}(?:[ \t].*)?")
_TOKEN: Final = "{{AGENT_NAME}}"


def renamed(text: bytes, name: str) -> bytes:
    """The file with this name in its first Name line outside code fences, all other bytes kept.

    Where there is none, one is put in after the first heading. What is not UTF-8 stays as it is.
    """
    try:
        whole = text.decode()
    except UnicodeDecodeError:
        return text
    shown = sanitised(name)
    for start, line in _outside_fences(whole):
        if found := _NAME.fullmatch(line):
            fresh = f"{found['label']} {shown}{found['note'] or ''}"
            return (whole[:start] + fresh + whole[start + len(line) :]).encode()
    return _inserted(whole, f"- **Name:** {shown}").encode()


def names_by_token(text: bytes) -> bool:
    """Whether its Name line shows whatever the agent is called, by the placeholder for it."""
    whole = text.decode("utf-8", "replace")
    lines = (_NAME.fullmatch(line) for _, line in _outside_fences(whole))
    first = next(filter(None, lines), None)
    return first is not None and first["value"].strip() == _TOKEN


def name_in(text: bytes) -> str | None:
    """What its first Name line says after the label, as it is written; None without one."""
    whole = text.decode("utf-8", "replace")
    lines = (_NAME.fullmatch(line) for _, line in _outside_fences(whole))
    first = next(filter(None, lines), None)
    return None if first is None else first["value"].strip()


def _inserted(whole: str, line: str) -> str:
    end = _LINE_END.search(whole)
    turn = end[0] if end else "\n"
    for start, known in _outside_fences(whole):
        if _HEADING.fullmatch(known):
            at = start + len(known)
            return f"{whole[:at]}{turn}{turn}{line}{whole[at:] or turn}"
    mark = "\ufeff" if whole.startswith("\ufeff") else ""
    return f"{mark}{line}{turn}{whole.removeprefix(mark)}"


def _outside_fences(whole: str) -> Iterator[tuple[int, str]]:
    """Every line that is no code, with where it begins."""
    fence = ""
    for start, line in _lines(whole):
        found = _FENCE.fullmatch(line)
        if fence:
            if found and found["marks"].startswith(fence) and not found["rest"].strip():
                fence = ""
        elif found and not ("`" in found["marks"] and "`" in found["rest"]):
            fence = found["marks"]
        else:
            yield start, line


def _lines(whole: str) -> Iterator[tuple[int, str]]:
    at = 0
    for end in _LINE_END.finditer(whole):
        yield at, whole[at : end.start()]
        at = end.end()
    yield at, whole[at:]
