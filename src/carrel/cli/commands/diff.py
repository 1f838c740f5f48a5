"""``carrel diff``: what changed between two versions of a file."""

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
@click.option("--from", "old", type=click.IntRange(0), help="A version; 0 is before the first.")
@click.option("--to", "new", type=click.IntRange(0), help="A version; by default the newest.")
def diff(file: Target, as_json: bool, old: int | None, new: int | None, **given: Any) -> None:
    """Compare two versions of a file.

    By default the newest with the one before. WHERE is an agent, templates/NAME, defaults or
    workspaces/ID. Of an agent it is its own versions that are compared. Exit code 0, whether they
    differ or not.
    """
    text = run_on_server(
        lambda desk: files_at(desk, file.place).diff(file.path, old, new), given, as_json=as_json
    )
    if as_json:
        print_json({"path": file.path, "from": old, "to": new, "diff": text})
    else:
        formatting.diff(text)
