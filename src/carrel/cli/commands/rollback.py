"""``carrel rollback``: a pin as it was before."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import pin_told
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@click.argument("agent")
@click.argument("path")
@server_options
@click.option("--version", type=click.IntRange(1), help="Of the agent's own history of the file.")
def rollback(agent: str, path: str, as_json: bool, version: int | None, **given: Any) -> None:
    """Take back an acceptance of a pinned file.

    The agent's pin goes back to what was reviewed before. AGENT is an id or a slug. An earlier
    version of any other file comes back with carrel put --from-version.
    """
    pin = run_on_server(
        lambda desk: desk.agent(agent).roll_back(path, version), given, as_json=as_json
    )
    if as_json:
        print_json({"ok": True, **pin_told(pin)})
    else:
        click.echo(f"{agent}: {path} is back at {formatting.short(pin.pinned_sha256)}")
