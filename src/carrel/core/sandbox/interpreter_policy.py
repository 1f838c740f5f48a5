"""Check which interpreters a command names.

A guard against mistakes, not a security boundary: it only inspects words, and a command can hide
what it starts. Isolation is provided by the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_COMMAND_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "python": re.compile(r"python(?:[0-9][0-9.]*)?"),
    "node": re.compile(r"node(?:js)?|npm|npx"),
}
_SEPARATORS: Final = re.compile(r"[\s;&|()<>{}`\"'$=]+")


def disallowed_runtime(command: str, runtimes: Collection[str] | None) -> str | None:
    """Runtime that the command names and that is not in `runtimes`.

    None if there is none.
    """
    if runtimes is None:
        return None
    if "bash" not in runtimes:
        return "bash"
    words = {word.rpartition("/")[2] for word in _SEPARATORS.split(command)}
    for runtime, pattern in _COMMAND_PATTERNS.items():
        if runtime not in runtimes and any(pattern.fullmatch(word) for word in words):
            return runtime
    return None
