"""``carrel cat``: what a file says."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting as showing
from carrel.cli.connection import ask, files_at
from carrel.cli.console import answer, server_options
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
    found = ask(
        lambda desk: files_at(desk, file.place).get(file.path, raw=raw, version=version),
        given,
        as_json=as_json,
    )
    if as_json:
        answer(showing.told(found))
    else:
        showing.content(found.content)
