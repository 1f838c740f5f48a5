"""``carrel`` commands run in this process, with the settings of a terminal."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path as File
from subprocess import CompletedProcess
from typing import Any

from click.testing import CliRunner, Result
from tests.support.server_process import TOKEN, environment

from carrel.cli import main


@dataclass(frozen=True)
class CarrelCommand:
    """``carrel`` for one server."""

    url: str
    token: str = TOKEN

    def __call__(
        self, *arguments: object, input: str | bytes | None = None, **variables: str
    ) -> Result:
        settings = {"CARREL_URL": self.url, "CARREL_TOKEN": self.token, "COLUMNS": "200"}
        result = CliRunner().invoke(
            main, [*map(str, arguments)], input=input, env={**settings, **variables}
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        assert "Traceback" not in result.output
        return result

    def output(self, *arguments: object, input: str | bytes | None = None, **variables: str) -> str:
        """Standard output of a command that succeeds."""
        result = self(*arguments, input=input, **variables)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object, code: int = 0, input: str | None = None) -> Any:
        """Output of a command with ``--json``."""
        result = self(*arguments, "--json", input=input)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)


def run_command(*arguments: object, **settings: str) -> CompletedProcess[str]:
    """Run a command with exactly these settings; asserts that it prints no token."""
    command = [*map(str, arguments)]
    cleared = {name: None for name in os.environ if name.startswith("CARREL_")}
    variables = environment(File("nowhere"), **settings) | {"COLUMNS": "160"}
    result = CliRunner().invoke(main, command, env={**cleared, **variables})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert TOKEN not in result.stdout + result.stderr
    return CompletedProcess(command, result.exit_code, result.stdout, result.stderr)
