"""`carrel diff`: compares two versions of a file."""

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
@click.option(
    "--from", "old", type=click.IntRange(0), help="Version; 0 is the empty file before the first."
)
@click.option("--to", "new", type=click.IntRange(0), help="Version; the newest by default.")
def diff(file: Target, as_json: bool, old: int | None, new: int | None, **options: Any) -> None:
    """Compare two versions of a file.

    By default the newest and the one before. WHERE is an agent, templates/NAME, defaults or
    workspaces/ID. For an agent, the versions of its own layer are compared. Exit code 0, whether
    they differ or not. carrel compare compares agents, layers, runs and times.
    """
    text = run_on_server(
        lambda client: files_of(client, file.owner).diff(file.path, old, new),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json({"path": file.path, "from": old, "to": new, "diff": text})
    else:
        formatting.print_diff(text)
