"""`carrel cp`: copies a file or directory."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.console import server_options
from carrel.cli.targets import FILE, Target
from carrel.cli.transfers import TARGET_OF_TRANSFER, transfer, transfer_options


@click.command()
@click.argument("source", type=FILE, metavar="WHERE/PATH")
@click.argument("to", type=TARGET_OF_TRANSFER, metavar="TO")
@server_options
@transfer_options
def cp(source: Target, to: str, as_json: bool, **options: Any) -> None:
    """Copy a file, or a directory with everything in it.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. TO is the path of the copy there;
    with a slash at its end, the directory to copy into. carrel log shows where a copy came from. A
    file at TO is replaced, unless --new is given. All is copied, or nothing.
    """
    transfer("copy", source, to, options, as_json=as_json)
