"""``carrel people``: whom agents work for."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options


@click.command()
@server_options
def people(as_json: bool, **given: Any) -> None:
    """List the people of the tenant."""
    found = run_on_server(lambda desk: desk.people.list(), given, as_json=as_json)
    rows = [person.facts for person in found]
    if as_json:
        print_json({"people": rows})
    else:
        formatting.facts_table(rows, ("name", "email", "role", "title", "timezone", "id"))
