"""`carrel policy`: shows, previews and replaces the tenant's policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.option_values import parse_object
from carrel.cli.record_output import confirm, print_record, yes_option

if TYPE_CHECKING:
    from carrel_client import AsyncClient

Facts = Mapping[str, Any]
_FILE: Final = click.argument("file", type=click.File("r"), metavar="FILE|-")


@click.group(invoke_without_command=True)
@server_options
@click.pass_context
def policy(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """Show, preview and replace the policy of the tenant.

    To change it: carrel policy --json > policy.json, edit the file, carrel policy put policy.json.
    """
    if context.invoked_subcommand is None:
        _show(as_json, options)


@policy.command()
@server_options
def show(as_json: bool, **options: Any) -> None:
    """Show the policy."""
    _show(as_json, options)


def _show(as_json: bool, options: dict[str, Any]) -> None:
    stored = run_on_server(lambda client: client.policy.get(), options, as_json=as_json)
    print_record(stored, as_json=as_json)


@policy.command()
@_FILE
@server_options
def preview(file: TextIO, as_json: bool, **options: Any) -> None:
    """Show which files would change class. Nothing is changed.

    FILE is a policy in JSON.
    """
    proposed = parse_object(file.read())
    effect = run_on_server(lambda client: client.policy.preview(proposed), options, as_json=as_json)
    print_json(effect) if as_json else _print_effect(effect)


@policy.command()
@_FILE
@click.option("--reason", help="Needed if a pinned file becomes live.")
@click.option("--confirm", "confirmed", is_flag=True, help="Pin files with placeholders.")
@yes_option
@server_options
def put(
    file: TextIO,
    reason: str | None,
    confirmed: bool,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Replace the policy, after showing its effect.

    FILE is a policy in JSON; absent fields get their defaults.
    """
    proposed = parse_object(file.read())
    if not yes:
        effect = run_on_server(
            lambda client: client.policy.preview(proposed), options, as_json=as_json
        )
        if not as_json:
            _print_effect(effect)
        confirm("Replace the policy?", yes=False, as_json=as_json)

    async def replace(client: AsyncClient) -> dict[str, Any]:
        return await client.policy.put(proposed, reason=reason, confirm=confirmed)

    stored = run_on_server(replace, options, as_json=as_json)
    print_json(stored) if as_json else click.echo("the policy is replaced")


def _print_effect(effect: Facts) -> None:
    changes: Sequence[Facts] = effect["changes"]
    rows = [(row["path"], row["from"], row["to"], str(row["agents"])) for row in changes]
    formatting.print_table(("path", "from", "to", "agents"), rows, right_aligned=("agents",))
    if effect["count"] != len(changes):
        click.echo(f"{len(changes)} of {effect['count']} changes are shown", err=True)
    for path in effect["placeholderFiles"]:
        text = f"{path}: its placeholders would no longer be filled; put needs --confirm"
        click.echo(formatting.printable(text), err=True)
    if effect["loosens"]:
        click.echo("pinned files would become live; put needs --reason", err=True)
