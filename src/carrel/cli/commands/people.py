"""``carrel people``: whom agents work for."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli import formatting as showing
from carrel.cli.connection import ask
from carrel.cli.console import answer, server_options


@click.command()
@server_options
def people(as_json: bool, **given: Any) -> None:
    """List the people of the tenant."""
    rows = ask(lambda desk: desk.people.list(), given, as_json=as_json)
    if as_json:
        answer({"people": rows})
    else:
        showing.facts_table(rows, ("name", "email", "role", "title", "timezone", "id"))
