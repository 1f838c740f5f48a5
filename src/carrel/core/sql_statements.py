"""Parser of SQL files with named statements (`-- name: x` lines)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)


def parse_statements(text: str) -> Mapping[str, str]:
    """Return statements by name. Raises ValueError if a name occurs twice."""
    parts = _NAME.split(text)
    names = parts[1::2]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"duplicate statement names: {', '.join(duplicates)}")
    return {
        name: statement.strip().removesuffix(";")
        for name, statement in zip(names, parts[2::2], strict=True)
    }
