"""Unified diffs of file contents."""

from __future__ import annotations

import difflib
from typing import Final

MAX_DIFF_LINES: Final = 4_000
"""Diffing is quadratic, so longer texts are shown as fully replaced."""


def unified_diff(before: bytes | None, after: bytes | None, path: str) -> str:
    """Unified diff; None stands for an absent file."""
    old, new = _split_lines(before), _split_lines(after)
    names = (
        "/dev/null" if before is None else f"a/{path}",
        "/dev/null" if after is None else f"b/{path}",
    )
    if old is None or new is None:
        return "" if before == after else f"Binary files {names[0]} and {names[1]} differ\n"
    if old == new:
        return ""
    if max(len(old), len(new)) > MAX_DIFF_LINES:
        return _replacement_diff(old, new, names)
    return "".join(map(_with_line_end, difflib.unified_diff(old, new, *names)))


def _split_lines(content: bytes | None) -> list[str] | None:
    """Lines with their line feeds; None for binary content."""
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


def _with_line_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _replacement_diff(old: list[str], new: list[str], names: tuple[str, str]) -> str:
    spans = f"@@ -{min(1, len(old))},{len(old)} +{min(1, len(new))},{len(new)} @@\n"
    head = f"--- {names[0]}\n+++ {names[1]}\n{spans}"
    lines = ["-" + line for line in old] + ["+" + line for line in new]
    return head + "".join(map(_with_line_end, lines))
