"""`carrel people` and `carrel invite`: lists people, and prints a sign-in link for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import find_person_id

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Invitation


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


@click.command()
@click.argument("person")
@server_options
def invite(person: str, as_json: bool, **options: Any) -> None:
    """Print a one-time sign-in link for a person.

    PERSON is an id or an e-mail address. Only a person who is owner or admin may invite.
    """
    invitation = run_on_server(lambda client: _invite(client, person), options, as_json=as_json)
    print_json(invitation.facts) if as_json else click.echo(invitation.link)


async def _invite(client: AsyncClient, person: str) -> Invitation:
    return await client.people.invite(await find_person_id(client, person))
