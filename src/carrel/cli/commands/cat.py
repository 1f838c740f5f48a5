"""`carrel cat`: prints a file."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--raw", is_flag=True, help="Show the unrendered text.")
@click.option("--version", type=click.IntRange(1), help="Show this version.")
def cat(file: Target, as_json: bool, raw: bool, version: int | None, **options: Any) -> None:
    """Show a file, or one of its versions.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. In a pipe the output is byte for
    byte. An earlier version is always shown unrendered, as it was stored.
    """
    response = run_on_server(
        lambda client: files_of(client, file.owner).get(file.path, raw=raw, version=version),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json(formatting.file_to_json(response))
    else:
        formatting.print_content(response.content)
