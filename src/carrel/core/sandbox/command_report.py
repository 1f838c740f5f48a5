"""What a model is told of a command that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_KILLED: Final = 128 + 9


def was_cut_short(exit_code: int | None, *, timed_out: bool) -> bool:
    """Whether what it left is what it wanted to leave is not known."""
    return timed_out or exit_code is None or exit_code < 0 or exit_code == _KILLED


def reported(
    stdout: bytes, stderr: bytes, exit_code: int | None, late: int | None, notes: Sequence[str]
) -> str:
    """Its output, its errors, how it ended if that was not well, and what else there is to know.

    ``late`` are the seconds that it had, where they were over.
    """
    said = (stdout + stderr).decode(errors="replace")
    if late is not None:
        ended = [f"[timed out after {late}s]"]
    elif exit_code is None:
        ended = ["[killed]"]
    else:
        ended = [f"[exit code {exit_code}]"] if exit_code else []
    lines = [*ended, *notes]
    if not lines:
        return said
    gap = "\n" if said and not said.endswith("\n") else ""
    return said + gap + "\n".join(lines)
