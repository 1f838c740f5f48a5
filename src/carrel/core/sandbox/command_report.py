"""Report of a finished command for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TRUNCATION_SLACK_BYTES: Final = 8
"""Bytes that a provider returns beyond a limit, so that its truncation is seen."""
_EXIT_KILLED: Final = 128 + 9


def was_interrupted(exit_code: int | None, *, timed_out: bool) -> bool:
    """Whether the command was stopped before it could finish its writes."""
    return timed_out or exit_code is None or exit_code < 0 or exit_code == _EXIT_KILLED


def format_report(
    stdout: bytes,
    stderr: bytes,
    exit_code: int | None,
    timeout_seconds: int | None,
    notes: Sequence[str],
) -> str:
    """Output, errors, exit status if not 0, and notes.

    `timeout_seconds` is the limit that was exceeded, None if none was.
    """
    output = (stdout + stderr).decode(errors="replace")
    if timeout_seconds is not None:
        status_lines = [f"[timed out after {timeout_seconds}s]"]
    elif exit_code is None:
        status_lines = ["[killed]"]
    else:
        status_lines = [f"[exit code {exit_code}]"] if exit_code else []
    lines = [*status_lines, *notes]
    if not lines:
        return output
    gap = "\n" if output and not output.endswith("\n") else ""
    return output + gap + "\n".join(lines)
