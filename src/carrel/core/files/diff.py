"""What changed between two texts, as people read it."""

from __future__ import annotations

import difflib
from typing import Final

MOST_LINES: Final = 4_000
"""Comparing costs up to the product of both lengths, so longer texts are shown as replaced."""


def unified(before: bytes | None, after: bytes | None, path: str) -> str:
    """A unified diff; None stands for a file that is not there."""
    old, new = _lines(before), _lines(after)
    names = (
        "/dev/null" if before is None else f"a/{path}",
        "/dev/null" if after is None else f"b/{path}",
    )
    if old is None or new is None:
        return "" if before == after else f"Binary files {names[0]} and {names[1]} differ\n"
    if old == new:
        return ""
    if max(len(old), len(new)) > MOST_LINES:
        return _replaced(old, new, names)
    return "".join(map(_ended, difflib.unified_diff(old, new, *names)))


def _lines(content: bytes | None) -> list[str] | None:
    """The lines with their ends; only newlines end one. None for what is not text."""
    if content is None:
        return []
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _replaced(old: list[str], new: list[str], names: tuple[str, str]) -> str:
    spans = f"@@ -{min(1, len(old))},{len(old)} +{min(1, len(new))},{len(new)} @@\n"
    head = f"--- {names[0]}\n+++ {names[1]}\n{spans}"
    lines = ["-" + line for line in old] + ["+" + line for line in new]
    return head + "".join(map(_ended, lines))
