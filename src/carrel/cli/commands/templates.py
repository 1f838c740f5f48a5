"""``carrel templates``: what agents can follow."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@server_options
def templates(as_json: bool, **given: Any) -> None:
    """List the templates of the tenant."""
    found = run_on_server(lambda desk: desk.templates.list(), given, as_json=as_json)
    rows = [template.facts for template in found]
    if as_json:
        print_json({"templates": rows})
    else:
        formatting.facts_table(rows, ("slug", "name", "id"))
