"""SQL kept in files: a text of statements, each under a ``-- name:`` line, as a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)


def parse(text: str) -> Mapping[str, str]:
    parts = _NAME.split(text)
    return {
        name: statement.strip().removesuffix(";")
        for name, statement in zip(parts[1::2], parts[2::2], strict=True)
    }
