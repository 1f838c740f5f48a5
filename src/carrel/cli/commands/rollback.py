"""`carrel rollback`: reverts the acceptance of a pinned file."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import pin_to_json
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@click.argument("agent")
@click.argument("path")
@server_options
@click.option(
    "--version", type=click.IntRange(1), help="Version in the agent's own history of the file."
)
def rollback(agent: str, path: str, as_json: bool, version: int | None, **options: Any) -> None:
    """Revert the acceptance of a pinned file.

    The agent's pin returns to the previously accepted version. AGENT is an id or a slug. For other
    files, use carrel put --from-version.
    """
    pin = run_on_server(
        lambda client: client.agent(agent).roll_back(path, version), options, as_json=as_json
    )
    if as_json:
        print_json({"ok": True, **pin_to_json(pin)})
    else:
        click.echo(f"{agent}: {path} is back at {formatting.short_digest(pin.pinned_sha256)}")
