"""Describes the structured result of a tool call in lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from carrel.cli.formatting import printable

_RESULT_KEYS: Final = ("structured", "structuredContent")
"""Where a reply has its structured result, over REST and over MCP."""


def structured_result(reply: object) -> Mapping[str, Any]:
    """Structured result of a reply; empty if it has none."""
    if isinstance(reply, Mapping):
        for key in _RESULT_KEYS:
            if isinstance(reply.get(key), Mapping):
                return dict(reply[key])
    return {}


def describe_result(result: Mapping[str, Any]) -> list[str]:
    """Outcome of a command, files with its whole output, and what the call changed."""
    outcome = ", ".join(_outcome(result))
    files = [f"output in {printable(str(path))}" for path in _items(result, "outputFiles")]
    changed = [_describe_change(change) for change in _items(result, "changed")]
    return [*([outcome] if outcome else []), *files, *filter(None, changed)]


def has_failed(result: Mapping[str, Any]) -> bool:
    """Whether the result is of a command that failed or was ended for its time limit."""
    return bool(result.get("timedOut") or result.get("exitCode"))


def _outcome(result: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if result.get("timedOut") is True:
        parts.append("timed out")
    if _is_number(result.get("exitCode")):
        parts.append(f"exit code {result['exitCode']}")
    if _is_number(result.get("durationMs")):
        parts.append(f"{result['durationMs'] / 1000:.2f} s")
    if result.get("truncated") is True:
        parts.append("cut")
    if isinstance(result.get("path"), str) and _is_number(result.get("version")):
        parts.append(f"{printable(result['path'])} version {result['version']}")
    return parts


def _describe_change(change: object) -> str:
    if not isinstance(change, Mapping):
        return ""
    return printable(f"{change.get('change')} {change.get('path')} version {change.get('version')}")


def _items(result: Mapping[str, Any], name: str) -> Sequence[object]:
    items = result.get(name)
    return items if isinstance(items, list | tuple) else ()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
