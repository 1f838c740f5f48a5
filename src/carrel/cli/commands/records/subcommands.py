"""Builds the subcommands that records of all types have: show and delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import server_options
from carrel.cli.names import RecordName
from carrel.cli.record_output import confirm, print_record, print_result, yes_option

if TYPE_CHECKING:
    from carrel_client import AsyncClient


async def _name_is_id(client: AsyncClient, name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class RecordKind:
    """Records of one type, as commands name and delete them."""

    collection: str
    """Name of the commands and of the client's attribute."""
    noun: str
    name_type: RecordName
    names: str
    """What names a record, for help texts: ``an id or a slug``."""
    consequence: str = ""
    """Sentence about a deletion."""
    deletion: str = "delete"
    find: Callable[[AsyncClient, str], Awaitable[str]] = _name_is_id
    """Returns the id of a name."""

    @property
    def phrase(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


def add_show(group: click.Group, kind: RecordKind) -> None:
    """Add ``show``, which prints one record."""

    @group.command(help=f"Show {kind.phrase}.\n\n{kind.noun.upper()} is {kind.names}.")
    @click.argument("name", metavar=kind.noun.upper(), type=kind.name_type)
    @server_options
    def show(name: str, as_json: bool, **options: Any) -> None:
        async def load(client: AsyncClient) -> Any:
            return await getattr(client, kind.collection).get(await kind.find(client, name))

        print_record(run_on_server(load, options, as_json=as_json).facts, as_json=as_json)


def add_delete(group: click.Group, kind: RecordKind) -> None:
    """Add ``delete``, or the verb of the records, which asks first."""

    @group.command(
        kind.deletion,
        help=f"{kind.deletion.title()} {kind.phrase}. {kind.consequence}"
        f"\n\n{kind.noun.upper()} is {kind.names}.",
    )
    @click.argument("name", metavar=kind.noun.upper(), type=kind.name_type)
    @yes_option
    @server_options
    def delete(name: str, yes: bool, as_json: bool, **options: Any) -> None:
        question = f"{kind.deletion.title()} the {kind.noun} {name}? {kind.consequence}"
        confirm(question, yes=yes, as_json=as_json)

        async def remove(client: AsyncClient) -> None:
            records = getattr(client, kind.collection)
            await records.delete(await kind.find(client, name))

        run_on_server(remove, options, as_json=as_json)
        print_result({"ok": True, "deleted": name}, f"{name}: deleted", as_json=as_json)
