"""What the file tools do with paths, lines and bytes once they have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import LONGEST_PATH, Path
from carrel.core.search.linear_regex import InvalidRegex, LinearRegex, compile_regex, escape_regex

LONGEST_OUTPUT: Final = 65_536
"""Bytes of an answer, where a sandbox does not say otherwise."""
CUT: Final = b"\n[output truncated]"
LONGEST_ANSWER: Final = 262_144
"""Bytes of an answer, whatever a sandbox says."""
USUAL_LINES: Final = 2000
_STRIDE: Final = 65_536
_OUTSIDE: Final = "Invalid path: directory traversal not allowed"


def relative(given: str) -> str:
    """A path from the root of a workspace, empty for the root itself. Raises Malformed.

    A slash at its beginning means that root and not the machine's.
    """
    parts = [part for part in given.strip().split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ValidationError(_OUTSIDE)
    return "/".join(parts)


def file_path(given: str) -> Path:
    """The file that a call names. Raises Malformed."""
    text = relative(given)
    if not text:
        raise ValidationError("file_path must reference a file")
    return Path(text)


def truncated(content: bytes, limit: int) -> str:
    """As text of at most so many bytes, cut between characters, the mark of the cut included."""
    # What is no UTF-8 never becomes shorter by being said in UTF-8.
    said = content[: limit + 1].decode(errors="replace").encode()
    if len(said) <= limit:
        return said.decode()
    kept = max(0, limit - len(CUT))
    return said[:kept].decode(errors="ignore") + CUT[: limit - kept].decode()


def numbered(content: bytes, offset: int, limit: int, enough: int = LONGEST_ANSWER) -> bytes:
    """Lines with their numbers, from a first one on; only a line feed ends a line.

    More than is enough is not looked for, however many lines are wanted.
    """
    first = offset if offset > 0 else 1
    most = limit if limit > 0 else USUAL_LINES
    most = min(most, enough // len(b"     1\t\n") + 1)
    lines = content[_start_of(content, first) :].split(b"\n", most)
    if len(lines) > most or not lines[-1]:
        lines.pop()
    return b"".join(b"%6d\t%b\n" % (number, line) for number, line in enumerate(lines, first))


def _start_of(content: bytes, number: int) -> int:
    """Where a line begins; where there is none, the end."""
    at, left = 0, number - 1
    while left and at < len(content):
        passed = content.count(b"\n", at, at + _STRIDE)
        if passed < left:
            at, left = at + _STRIDE, left - passed
            continue
        for _ in range(left):
            at = content.index(b"\n", at) + 1
        left = 0
    return at


def replaced(
    content: bytes,
    old: bytes,
    new: bytes,
    *,
    every: bool,
    name: str,
    admit: Callable[[int], None] = lambda size: None,
) -> tuple[bytes, int]:
    """With a text put literally in another's place, and how often. Raises Missing or Malformed.

    It is done on bytes, so that what is not to be replaced stays as it is, whatever it is. How
    large it will be is admitted first: a few bytes can come to more than a machine has.
    """
    count = content.count(old)
    if not count:
        raise NotFound(f"old_string not found in {name}")
    if count > 1 and not every:
        raise ValidationError(
            f"old_string is not unique ({count} matches); add context or set replace_all"
        )
    admit(len(content) + count * (len(new) - len(old)))
    return content.replace(old, new), count


@lru_cache(maxsize=256)
def matcher(pattern: str) -> LinearRegex:
    """What tells whether paths fit a glob, in time that grows with the path alone: as bytes.

    ``*`` and ``?`` stay within one segment, ``**`` is any number of segments, and all else stands
    for itself. Raises Malformed.
    """
    if len(pattern) > LONGEST_PATH:
        raise ValidationError(f"a glob has at most {LONGEST_PATH} characters")
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    said = []
    for place, part in enumerate(parts, 1):
        last = place == len(parts)
        if part == "**":
            said.append("(?:[^/]+/)*[^/]+" if last else "(?:[^/]+/)*")
        else:
            said.append("".join(map(_glob_character, part)) + ("" if last else "/"))
    try:
        return compile_regex("(?s)" + "".join(said))
    except InvalidRegex:
        raise ValidationError("the glob is too large") from None


def _glob_character(character: str) -> str:
    if character == "*":
        return "[^/]*"
    return "[^/]" if character == "?" else escape_regex(character)


def beneath(root: str, path: Path) -> str | None:
    """A path as it is called from a directory; None where it is not within."""
    if not root:
        return path.text
    return path.text[len(root) + 1 :] if path.text.startswith(root + "/") else None
