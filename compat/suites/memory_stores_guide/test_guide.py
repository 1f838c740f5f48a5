"""Runs the Python code of the guide of memory stores as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path as File

from carrel_client import Client

GUIDE = "docs/guide/build/memory-stores.md"


def test_the_code_of_the_guide_prints_what_it_says() -> None:
    page = (File(os.environ["CARREL_REPOSITORY"]) / GUIDE).read_text("utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    environment = {**os.environ, "ANTHROPIC_BASE_URL": os.environ["CARREL_URL"]}
    environment["ANTHROPIC_API_KEY"] = _create_key()
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "memory_precondition_failed_error",
        "modified Use spaces.",
        "created Use tabs.",
        "File created successfully at: /memories/a.md",
    ]


def _create_key() -> str:
    """A service key like that of the page."""
    with Client(os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]) as client:
        scopes = ["workspace:read", "workspace:write", "tenant:read", "tenant:admin"]
        return client.keys.create("sdk", kind="service", scopes=scopes).key
