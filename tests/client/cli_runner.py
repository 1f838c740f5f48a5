"""Commands called in this process, with the settings that a terminal would have around it."""

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
class Carrel:
    """``carrel`` at one server."""

    url: str
    token: str = TOKEN

    def __call__(
        self, *arguments: object, input: str | bytes | None = None, **around: str
    ) -> Result:
        settings = {"CARREL_URL": self.url, "CARREL_TOKEN": self.token, "COLUMNS": "200", **around}
        done = CliRunner().invoke(main, [*map(str, arguments)], input=input, env=settings)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.output
        return done

    def said(self, *arguments: object, input: str | bytes | None = None, **around: str) -> str:
        """What a command that goes well says on standard output."""
        done = self(*arguments, input=input, **around)
        assert done.exit_code == 0, done.output
        return done.stdout

    def told(self, *arguments: object, code: int = 0, input: str | None = None) -> Any:
        """What a command says in JSON."""
        done = self(*arguments, "--json", input=input)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)


def finished(*arguments: object, **settings: str) -> CompletedProcess[str]:
    """What became of a command, as of a process with just these settings; no token is said."""
    command = [*map(str, arguments)]
    theirs = {name: None for name in os.environ if name.startswith("CARREL_")}
    given = environment(File("nowhere"), **settings) | {"COLUMNS": "160"}
    done = CliRunner().invoke(main, command, env={**theirs, **given})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert TOKEN not in done.stdout + done.stderr
    return CompletedProcess(command, done.exit_code, done.stdout, done.stderr)
