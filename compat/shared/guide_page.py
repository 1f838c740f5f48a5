"""Runs the Python code of a guide's page against the live server."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCUMENTED_URL, DOCUMENTED_TOKEN = "http://127.0.0.1:8787", "a-token-of-your-own-choosing"
MAX_LINES = 30
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str) -> dict[str, Any]:
    """Execute all blocks of a page in order; returns the names that they define."""
    page = Path(os.environ["CARREL_REPOSITORY"], "docs", "guide", "build", name)
    blocks = BLOCK.findall(page.read_text("utf-8"))
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert 0 < len(lines) <= MAX_LINES, len(lines)
    names: dict[str, Any] = {}
    for block in blocks:
        code = block.replace(DOCUMENTED_URL, os.environ["CARREL_URL"])
        code = code.replace(DOCUMENTED_TOKEN, os.environ["CARREL_TOKEN"])
        exec(compile(code, name, "exec"), names)
    return names
