"""Runs the Python code of the guide of memory stores as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path as File

GUIDE = "docs/guide/build/memory-stores.md"


def test_the_code_of_the_guide_prints_what_it_says() -> None:
    page = (File(os.environ["CARREL_REPOSITORY"]) / GUIDE).read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {"ANTHROPIC_BASE_URL": "CARREL_URL", "ANTHROPIC_AUTH_TOKEN": "CARREL_TOKEN"}
    environment = {**os.environ, **{name: os.environ[ours] for name, ours in names.items()}}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "memory_precondition_failed_error",
        "modified Use spaces.",
        "created Use tabs.",
    ]
