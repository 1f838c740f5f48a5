"""`carrel erase`: deletes a session, an agent or a person with all their content."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import AGENT, PERSON, find_person_id

if TYPE_CHECKING:
    from carrel_client import AsyncClient


@click.group()
def erase() -> None:
    """Erase a session, an agent or a person; for admins.

    The content leaves rows, search indexes, transcript files and git, and cannot be restored.
    """


@erase.command()
@click.argument("agent", type=AGENT)
@click.argument("id")
@click.confirmation_option(prompt="Erase this session?")
@server_options
def session(agent: str, id: str, as_json: bool, **options: Any) -> None:
    """Erase a session of an agent: its entries, transcript file and approvals.

    AGENT is an id or a slug.
    """

    async def delete(client: AsyncClient) -> None:
        await (await client.agent(agent).sessions.get(id)).delete()

    _run(delete, id, options, as_json)


@erase.command()
@click.argument("agent", type=AGENT)
@click.confirmation_option(prompt="Erase this agent and all its files, memories and sessions?")
@server_options
def agent(agent: str, as_json: bool, **options: Any) -> None:
    """Erase an agent: its files with history, memories, sessions, runs, items and keys.

    AGENT is an id or a slug.
    """
    _run(lambda client: client.agents.delete(agent), agent, options, as_json)


@erase.command()
@click.argument("person", type=PERSON)
@click.confirmation_option(prompt="Erase this person, their keys and private items?")
@server_options
def person(person: str, as_json: bool, **options: Any) -> None:
    """Erase a person: their profile everywhere, private items and keys.

    PERSON is an id or an e-mail address. Their agents stay, without pairing and owner.
    """

    async def delete(client: AsyncClient) -> None:
        await client.people.delete(await find_person_id(client, person))

    _run(delete, person, options, as_json)


def _run(
    delete: Callable[[AsyncClient], Coroutine[Any, Any, None]],
    name: str,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    run_on_server(delete, options, as_json=as_json)
    print_json({"ok": True}) if as_json else click.echo(f"{name}: erased")
