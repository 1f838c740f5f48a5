"""The line of IDENTITY.md that says what an agent is called, and how a rename changes it alone.

The file belongs to whoever wrote it: all but that name is kept to the byte. A line in a code fence
is an example of a name and none.
"""

from __future__ import annotations

import re
from typing import Final

from carrel.core.agents import persona
from carrel.core.identifiers import Path
from carrel.core.markdown import labelled_lines
from carrel.core.markdown.fences import BULLET, END, MARK, MarkdownLine, line_end, outside_fences
from carrel.core.overlay.placeholders import sanitised

IDENTITY: Final = Path("IDENTITY.md")
_NAME: Final = "name"
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=++|-++)[ \t]*+\Z")
_BEGINS_ANEW: Final = re.compile(rf" {{0,3}}(?:{BULLET}[ \t]|#{{1,6}}[ \t]|>|`{{3}}|~{{3}}|\Z)")


def renamed(text: bytes, name: str) -> bytes:
    """The file with this name in its Name line, which is added if there is none.

    What is not UTF-8 is left as it is.
    """
    file = _decoded(text)
    if file is None:
        return text
    found, shown = labelled_lines.find(file, _NAME), sanitised(name)
    if found is None:
        return _with_a_name_line(file, shown).encode()
    return labelled_lines.replaced(file, found, shown).encode()


def name_in(text: bytes) -> str | None:
    """What the Name line says, as it is written there; None where there is no such line."""
    file = _decoded(text)
    found = None if file is None else labelled_lines.find(file, _NAME)
    return file[found.start : found.end] if file is not None and found else None


def names_in(text: bytes) -> tuple[str, ...]:
    """What all Name lines say: whoever may not change the name may not add another either.

    Those that a prompt takes for one are of them, though a rename would not.
    """
    file = _decoded(text)
    if file is None:
        return ()
    written = tuple(file[at.start : at.end] for at in labelled_lines.every(file, _NAME))
    return (*written, *persona.values(file, _NAME))


def follows_its_agent(text: bytes) -> bool:
    """Whether the Name line shows whatever the agent is called, so that a rename needs no edit."""
    return "{{AGENT_NAME}}" in (name_in(text) or "")


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _with_a_name_line(file: str, shown: str) -> str:
    """The file with a Name line after its first heading, or else at its top."""
    at = _after_the_heading(file)
    before, after = file[:at], file[at:]
    end = line_end(file)
    line = f"- **Name:** {shown}{end}"
    if at > len(MARK) and not before.endswith(("\r", "\n")):
        line = end + line.removesuffix(end)
    following = END.split(after, maxsplit=1)[0]
    gap = "" if _BEGINS_ANEW.match(following) else end
    return f"{before}{line}{gap}{after}"


def _after_the_heading(file: str) -> int:
    former: MarkdownLine | None = None
    for line in outside_fences(file):
        underlined = former and former.text.strip() and former.next == line.start
        if not line.depth and (
            _HEADING.match(line.text) or (underlined and _UNDERLINE.match(line.text))
        ):
            return line.next
        former = line
    return len(MARK) if file.startswith(MARK) else 0
