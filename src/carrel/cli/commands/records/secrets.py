"""`carrel secrets`: lists, stores and deletes the secrets that are redacted."""

from __future__ import annotations

from typing import Any, Final, TextIO

import click

from carrel.cli.commands.records.subcommands import RecordKind, add_delete, add_show
from carrel.cli.connection import run_on_server
from carrel.cli.console import server_options
from carrel.cli.names import SECRET
from carrel.cli.option_values import read_private_text
from carrel.cli.record_output import print_page, print_result


@click.group(invoke_without_command=True)
@server_options
@click.pass_context
def secrets(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List secrets, without their values; store and delete them.

    Values of secrets are redacted from everything that is written.
    """
    if context.invoked_subcommand is not None:
        return
    records = run_on_server(lambda client: client.secrets.list(), options, as_json=as_json)
    rows = [row.facts for row in records]
    print_page("secrets", rows, ("id", "createdAt", "updatedAt"), as_json=as_json)


@secrets.command()
@click.argument("id", type=SECRET)
@click.argument("file", type=click.File("r"), metavar="[FILE|-]", required=False)
@server_options
def put(id: str, file: TextIO | None, as_json: bool, **options: Any) -> None:
    """Store or replace a secret.

    The value comes from FILE or standard input, without its last line break; on a terminal it is
    asked for. It is never an argument, since other processes can read arguments.
    """
    value = read_private_text(file, f"Value of {id}")
    secret = run_on_server(lambda client: client.secrets.put(id, value), options, as_json=as_json)
    print_result(secret.facts, f"{id}: stored", as_json=as_json)


_KIND: Final = RecordKind(
    "secrets", "secret", SECRET, "its id", "Later writes of its value are no longer redacted."
)
add_show(secrets, _KIND)
add_delete(secrets, _KIND)
