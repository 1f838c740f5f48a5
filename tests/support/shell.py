"""Running the commands of a page as its reader would, and comparing what they say with the page."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

from tests.support.server_process import command

BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE: Final = File(__file__).parent
ANYTHING: Final = "…"
_BETWEEN: Final = "\x1e"


@dataclass(frozen=True)
class Step:
    """Commands, and what the page says that they say, if it does."""

    commands: str
    kind: str = ""
    expected: str = ""


def steps(text: str) -> list[Step]:
    """What stands in ``sh`` is to be run; ``text`` or ``json`` right after it is what it says."""
    found: list[Step] = []
    for kind, body in BLOCK.findall(text):
        if kind == "sh":
            found.append(Step(body))
        elif kind in {"text", "json"} and found and not found[-1].kind:
            found[-1] = Step(found[-1].commands, kind, body)
    return found


def said(
    commands: list[str], directory: File, around: Mapping[str, str], program: str
) -> list[str]:
    """Run them in one shell, and give what each block said. Raises where one fails."""
    tools = directory / "tools"
    tools.mkdir()
    _tool(tools / "curl", f'exec {shlex.join(command((HERE / "curl.py").read_text("utf-8")))} "$@"')
    _tool(tools / "carrel", f'exec {shlex.join(command(program))} "$@"')
    _tool(tools / "python3", f'exec "{sys.executable}" -I -S "$@"')
    script = "set -eu\n" + "".join(f"{each}\nprintf '\\036'\n" for each in commands)
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=directory,
        env={**around, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    parts = done.stdout.split(_BETWEEN)
    assert done.returncode == 0, f"after {len(parts)} blocks: {parts[-1]}{done.stderr}"
    return parts[:-1]


def _tool(file: File, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def compare(step: Step, found: str) -> None:
    """Raises AssertionError where what was said is not what the page says."""
    if step.kind == "json":
        assert fits(json.loads(step.expected), json.loads(found)), found
    elif step.kind:
        pattern = re.escape(step.expected.strip()).replace(ANYTHING, ".*")
        assert re.fullmatch(pattern, found.strip()), found


def fits(expected: Any, found: Any) -> bool:
    if expected == ANYTHING:
        return found is not None
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            fits(expected[name], found[name]) for name in expected
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(fits, expected, found))
    return bool(expected == found)
