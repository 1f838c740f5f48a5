"""`carrel mkdir`: creates a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target
from carrel.cli.transfers import commit_to_json

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CommitResult


@click.command()
@click.argument("directory", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--reason", help="Reason, for the history.")
def mkdir(directory: Target, as_json: bool, reason: str | None, **options: Any) -> None:
    """Create a directory, which stays when it is empty.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Directories above it need not
    exist, and one that exists already is kept. A directory for files needs no mkdir: it exists
    while a file is in it.
    """

    async def make(client: AsyncClient) -> CommitResult:
        return await files_of(client, directory.owner).make_directory(directory.path, reason=reason)

    result = run_on_server(make, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
    else:
        click.echo(f"{directory}/: " + ("created" if any_written(result) else "exists already"))


def any_written(result: CommitResult) -> bool:
    return any(change.version is not None for change in result.changes)
