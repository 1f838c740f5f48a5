"""Which interpreters the commands of a sandbox may name.

A rail beside the stairs, and no wall: it reads words, and a command can be written so that no word
tells what it starts. What keeps a command in is the sandbox that it runs in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    "python": re.compile(r"python(?:[0-9][0-9.]*)?"),
    "node": re.compile(r"node(?:js)?|npm|npx"),
}
_APART: Final = re.compile(r"[\s;&|()<>{}`\"'$=]+")


def not_allowed(command: str, runtimes: Collection[str] | None) -> str | None:
    """The runtime that a command names and that is not among these; None where all is well."""
    if runtimes is None:
        return None
    if "bash" not in runtimes:
        return "bash"
    words = {word.rpartition("/")[2] for word in _APART.split(command)}
    for runtime, known in _WORDS.items():
        if runtime not in runtimes and any(known.fullmatch(word) for word in words):
            return runtime
    return None
