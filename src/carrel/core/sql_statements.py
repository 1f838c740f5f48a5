"""SQL kept in files: a text of statements, each under a ``-- name:`` line, as a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)


def parse(text: str) -> Mapping[str, str]:
    """Raises ValueError where two have one name."""
    parts = _NAME.split(text)
    names = parts[1::2]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"there are several statements called {', '.join(twice)}")
    return {
        name: statement.strip().removesuffix(";")
        for name, statement in zip(names, parts[2::2], strict=True)
    }
