"""`carrel people`: lists the people."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@server_options
def people(as_json: bool, **options: Any) -> None:
    """List the people of the tenant."""
    records = run_on_server(lambda client: client.people.list(), options, as_json=as_json)
    rows = [person.facts for person in records]
    if as_json:
        print_json({"people": rows})
    else:
        formatting.print_records(rows, ("name", "email", "role", "title", "timezone", "id"))
