"""`carrel people` and `carrel invite`: manages people, and prints sign-in links."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from carrel.cli.commands.records.subcommands import RecordKind, add_delete, add_show
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import PERSON, find_person_id
from carrel.cli.record_output import changed_fields, page_options, print_page, print_result

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Invitation, Person

Command = TypeVar("Command", bound=Callable[..., Any])
_COLUMNS: Final = ("name", "email", "role", "title", "timezone", "id")
_ROLES: Final = click.Choice(["owner", "admin", "member"])


@click.group(invoke_without_command=True)
@server_options
@click.option("--role", type=_ROLES, help="Only people with this role.")
@click.option("--search", "q", default="", help="Only those with these words in name or e-mail.")
@page_options
@click.pass_context
def people(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List people; create, invite, change and delete them."""
    if context.invoked_subcommand is not None:
        return
    filters = {name: options.pop(name) for name in ("q", "role")}
    limit, after = options.pop("limit"), options.pop("after") or ""

    async def load(client: AsyncClient) -> tuple[Any, tuple[Person, ...]]:
        if limit is None:
            return None, await client.people.list(**filters)
        page = await client.people.page(limit=limit, cursor=after, **filters)
        return page, page.items

    page, records = run_on_server(load, options, as_json=as_json)
    rows = [row.facts for row in records]
    print_page("people", rows, _COLUMNS, as_json=as_json, page=page)


def _profile_options(command: Command) -> Command:
    for option in (
        click.option("--pronouns", help="Pronouns."),
        click.option("--timezone", help="Time zone, such as Europe/Paris."),
        click.option("--title", help="Job title."),
    ):
        command = option(command)
    return command


@people.command()
@click.argument("name")
@click.argument("email")
@click.option("--role", type=_ROLES, default="member", show_default=True, help="Role.")
@_profile_options
@click.option("--invite", "with_link", is_flag=True, help="Also print a sign-in link.")
@server_options
def create(name: str, email: str, with_link: bool, as_json: bool, **options: Any) -> None:
    """Create a person and print their id."""
    fields = {field: options.pop(field) for field in ("role", "title", "timezone", "pronouns")}

    async def create_person(client: AsyncClient) -> tuple[Person, Invitation | None]:
        person = await client.people.create(name, email, **fields)
        return person, await client.people.invite(person.id) if with_link else None

    person, invitation = run_on_server(create_person, options, as_json=as_json)
    link = {} if invitation is None else {"invitation": dict(invitation.facts)}
    print_result({**person.facts, **link}, person.id, as_json=as_json)
    if invitation is not None and not as_json:
        click.echo(invitation.link)


@people.command()
@click.argument("person", type=PERSON)
@click.option("--name", help="Name.")
@click.option("--email", help="E-mail address.")
@click.option("--role", type=_ROLES, help="Role.")
@_profile_options
@server_options
def change(person: str, as_json: bool, **options: Any) -> None:
    """Change a person. USER.md of their agents changes with them.

    PERSON is an id or an e-mail address. Only what is passed changes; an empty text removes title,
    time zone or pronouns.
    """
    names = ("name", "email", "role", "title", "timezone", "pronouns")
    fields = changed_fields(**{name: options.pop(name) for name in names})

    async def change_person(client: AsyncClient) -> Person:
        return await client.people.change(await find_person_id(client, person), **fields)

    changed = run_on_server(change_person, options, as_json=as_json)
    print_result(changed.facts, f"{changed.email}: changed", as_json=as_json)


@click.command()
@click.argument("person", type=PERSON)
@server_options
def invite(person: str, as_json: bool, **options: Any) -> None:
    """Print a one-time sign-in link for a person.

    PERSON is an id or an e-mail address. Only a person who is owner or admin may invite.
    """
    invitation = run_on_server(lambda client: _invite(client, person), options, as_json=as_json)
    print_json(invitation.facts) if as_json else click.echo(invitation.link)


async def _invite(client: AsyncClient, person: str) -> Invitation:
    return await client.people.invite(await find_person_id(client, person))


_KIND: Final = RecordKind(
    "people",
    "person",
    PERSON,
    "an id or an e-mail address",
    "Their profile, private items and keys are deleted too; their agents stay.",
    find=find_person_id,
)
add_show(people, _KIND)
people.add_command(invite)
add_delete(people, _KIND)
