"""The examples of the Python guide work as documented."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path as File
from typing import Any

import pytest

GUIDE = File(__file__).parents[2] / "docs/guide/build/python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def blocks(text: str) -> list[str]:
    """Each block, moved down to its line, so that errors have the line of the page."""
    return ["\n" * text.count("\n", 0, match.start(1)) + match[1] for match in BLOCK.finditer(text)]


@pytest.mark.anyio
async def test_examples_work_in_order(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(GUIDE.read_text("utf-8")):
        code = compile(block, str(GUIDE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
    assert (tmp_path / "my-data/carrel.db").exists()
    assert names["acme"] is not None


def test_every_line_of_the_guide_is_executed() -> None:
    text = GUIDE.read_text("utf-8")
    assert len(blocks(text)) == text.count("```python") > 10
