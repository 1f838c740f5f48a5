"""Runs the commands of a documentation page and compares their output with the page."""

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
    """Commands, and their expected output if the page has it."""

    commands: str
    kind: str = ""
    expected: str = ""


def steps(text: str) -> list[Step]:
    """``sh`` blocks are run; a ``text`` or ``json`` block right after one is its output."""
    parsed: list[Step] = []
    for kind, body in BLOCK.findall(text):
        if kind == "sh":
            parsed.append(Step(body))
        elif kind in {"text", "json"} and parsed and not parsed[-1].kind:
            parsed[-1] = Step(parsed[-1].commands, kind, body)
    return parsed


def run_commands(
    commands: list[str], directory: File, environment: Mapping[str, str], program: str
) -> list[str]:
    """Run commands in one shell and return the output of each. Raises AssertionError on failure."""
    tools = directory / "tools"
    tools.mkdir()
    _tool(tools / "curl", f'exec {shlex.join(command((HERE / "curl.py").read_text("utf-8")))} "$@"')
    _tool(tools / "carrel", f'exec {shlex.join(command(program))} "$@"')
    _tool(tools / "python3", f'exec "{sys.executable}" -I -S "$@"')
    script = "set -eu\n" + "".join(f"{block}\nprintf '\\036'\n" for block in commands)
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=directory,
        env={**environment, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
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


def compare(step: Step, output: str) -> None:
    """Raises AssertionError if the output differs from the page."""
    if step.kind == "json":
        assert matches(json.loads(step.expected), json.loads(output)), output
    elif step.kind:
        pattern = re.escape(step.expected.strip()).replace(ANYTHING, ".*")
        assert re.fullmatch(pattern, output.strip()), output


def matches(expected: Any, actual: Any) -> bool:
    if expected == ANYTHING:
        return actual is not None
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            matches(expected[name], actual[name]) for name in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    return bool(expected == actual)
