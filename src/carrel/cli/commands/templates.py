"""`carrel templates`: lists the templates."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@server_options
def templates(as_json: bool, **options: Any) -> None:
    """List the templates of the tenant."""
    records = run_on_server(lambda client: client.templates.list(), options, as_json=as_json)
    rows = [template.facts for template in records]
    if as_json:
        print_json({"templates": rows})
    else:
        formatting.print_records(rows, ("slug", "name", "id"))
