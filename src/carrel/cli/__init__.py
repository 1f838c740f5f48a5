"""Command line interface: `carrel` and its lazily imported commands."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from typing import Final

import click

from carrel.core.version import VERSION

_READ_COMMANDS: Final = ("ls", "cat", "log", "diff", "compare", "explain", "skills")
_WRITE_COMMANDS: Final = ("put", "edit", "rm", "mv", "cp", "mkdir", "commit", "import")
_FILE_COMMANDS: Final = (*_READ_COMMANDS, *_WRITE_COMMANDS)
_REVIEW_COMMANDS: Final = ("pins", "accept", "decline", "merge", "rollback", "reviews")
_FLEET_COMMANDS: Final = ("overview", "inbox")
_RECORD_COMMANDS: Final = ("agents", "connect", "templates", "people", "invite", "keys", "audit")
_TENANT_COMMANDS: Final = ("tenant", "policy", "secrets", "webhooks")
_CLIENT_COMMANDS: Final = (
    *_FLEET_COMMANDS,
    *_FILE_COMMANDS,
    *_REVIEW_COMMANDS,
    "run",
    "replay",
    *_RECORD_COMMANDS,
)
_STORE_COMMANDS: Final = (
    "doctor",
    "backup",
    "restore",
    "export",
    "gc",
    "erase",
    "purge",
    "reindex",
    "defaults",
    "git",
)
_MEMORY_COMMANDS: Final = ("prompt", "lint", "sessions", "entries", "dream")
_PLACE_COMMANDS: Final = ("sandboxes", "workspaces")
_TOOL_COMMANDS: Final = ("tools", *_PLACE_COMMANDS, "approvals", "approve")
_AGENT_COMMANDS: Final = ("pull", *_MEMORY_COMMANDS, *_TOOL_COMMANDS, "apply", "sync")
COMMANDS: Final = (
    "serve",
    "mcp",
    "search",
    *_CLIENT_COMMANDS,
    *_TENANT_COMMANDS,
    *_AGENT_COMMANDS,
    *_STORE_COMMANDS,
    "completion",
    "version",
)
"""Every command is a module of that name in `commands`, unless `_MODULES` names another.

Modules import heavy dependencies lazily, to keep `--help` fast.
"""


_FILE_TREE_COMMANDS: Final = ("mv", "cp", "mkdir", "rm", "commit")
_MODULES: Final = {
    **dict.fromkeys(_FILE_TREE_COMMANDS, "file_tree"),
    "decline": "accept",
    **dict.fromkeys(_FLEET_COMMANDS, "fleet.overview"),
    "merge": "pins",
    "reviews": "rollback",
    **{
        name: f"records.{name}" for name in (*_RECORD_COMMANDS, *_TENANT_COMMANDS, *_PLACE_COMMANDS)
    },
    "invite": "records.people",
    "entries": "sessions",
    "skills": "ls",
    "compare": "diff",
}


_HELP_OPTIONS: Final = frozenset({"-h", "--help"})
_READS_SETTINGS: Final = f"{__name__}.reads_settings"
"""Help and completion do not need settings, whose import takes longer than all the rest."""


def module_of_command(name: str) -> str:
    """Name of the module that defines a command."""
    module = f"{name}_" if iskeyword(name) else _MODULES.get(name, name)
    return f"{__name__}.commands.{module}"


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(import_module(module_of_command(cmd_name)), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        ctx.meta[_READS_SETTINGS] = args[0] != "completion" and _HELP_OPTIONS.isdisjoint(args)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": sorted(_HELP_OPTIONS)})
@click.version_option(VERSION, prog_name="carrel", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, /) -> None:
    """Layered, versioned files for AI agents, frozen for every run."""
    if not context.meta[_READS_SETTINGS]:
        return
    from carrel.cli.unknown_variables import unknown_variables  # noqa: PLC0415 - so that --help stays quick

    for name, similar in unknown_variables():
        hint = f"; did you mean {similar}?" if similar else ""
        click.echo(f"warning: {name} is not a setting{hint}", err=True)
