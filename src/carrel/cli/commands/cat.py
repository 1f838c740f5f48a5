"""``carrel cat``: what a file says."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--raw", is_flag=True, help="With its placeholders as they stand.")
@click.option("--version", type=click.IntRange(1), help="As it was at this version.")
def cat(file: Target, as_json: bool, raw: bool, version: int | None, **given: Any) -> None:
    """Show a file as it is served, or as it was.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. In a pipe the file comes to the
    byte. An earlier version is always shown as it was stored.
    """
    found = run_on_server(
        lambda desk: files_at(desk, file.place).get(file.path, raw=raw, version=version),
        given,
        as_json=as_json,
    )
    if as_json:
        print_json(formatting.told(found))
    else:
        formatting.content(found.content)
