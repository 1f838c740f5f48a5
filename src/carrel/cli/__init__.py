"""The face for people at a terminal: ``carrel`` and its commands, each imported when it is run."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from typing import Final

import click

from carrel.core.version import VERSION

_FILES: Final = ("ls", "cat", "put", "edit", "rm", "log", "diff", "explain", "import")
_REVIEW: Final = ("pins", "accept", "rollback")
_RECORDS: Final = ("agents", "templates", "people")
_ASKING: Final = (*_FILES, *_REVIEW, "run", "replay", *_RECORDS)
_STORE: Final = ("doctor", "backup", "restore", "export", "gc", "reindex", "defaults", "git")
_MIND: Final = ("prompt", "lint", "sessions", "dream")
_HANDS: Final = ("sandboxes", "workspaces", "approvals", "approve")
_DESK: Final = ("pull", *_MIND, *_HANDS, "apply", "sync")
COMMANDS: Final = ("serve", "mcp", *_ASKING, *_DESK, *_STORE, "version")
"""Each is a module here with a click command of its name. None may import much at its top."""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(import_module(f"{__name__}.commands.{name}"), name)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="carrel", message="%(prog)s %(version)s")
def main() -> None:
    """A private desk for every AI agent: layered, versioned files, frozen for every run."""
