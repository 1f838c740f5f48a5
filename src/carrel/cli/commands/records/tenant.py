"""`carrel tenant`: shows and renames the tenant."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import server_options
from carrel.cli.record_output import print_record, print_result


@click.group(invoke_without_command=True)
@server_options
@click.pass_context
def tenant(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """Show the tenant of the token, or rename it."""
    if context.invoked_subcommand is None:
        _show(as_json, options)


@tenant.command()
@server_options
def show(as_json: bool, **options: Any) -> None:
    """Show the tenant."""
    _show(as_json, options)


def _show(as_json: bool, options: dict[str, Any]) -> None:
    record = run_on_server(lambda client: client.tenants.me(), options, as_json=as_json)
    print_record(record.facts, as_json=as_json)


@tenant.command()
@click.argument("name")
@server_options
def rename(name: str, as_json: bool, **options: Any) -> None:
    """Change the name of the tenant. USER.md of all agents changes with it."""
    renamed = run_on_server(lambda client: client.tenants.rename(name), options, as_json=as_json)
    print_result(renamed.facts, f"{renamed.slug}: {renamed.name}", as_json=as_json)
