"""The adapter is typed strictly against the runtime's own types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_adapter_has_no_type_errors() -> None:
    source = Path(os.environ["CARREL_REPOSITORY"], "client", "src")
    options = ["--strict", "--cache-dir", os.devnull, "-p", os.environ["COMPAT_PACKAGE"]]
    command = [sys.executable, "-m", "mypy", *options]
    checked = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
