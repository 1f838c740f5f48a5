"""Builds the `ls`, `add` and `rm` commands of account-level record types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from carrel.cli.connection import connect
from carrel.cli.console import print_json, run, server_options
from carrel.cli.option_values import parse_json_object

Row = Mapping[str, Any]


def _call_collection(
    collection: str, work: Callable[[Any], Any], options: Mapping[str, Any], as_json: bool
) -> Any:
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def call_server() -> Any:
        async with connect(options) as (client, _):
            return await work(getattr(client, collection))

    return run(call_server, as_json=as_json, expected=(CarrelError,))


def add_record_commands(
    group: click.Group, singular: str, extra_columns: Callable[[Row], Sequence[str]]
) -> None:
    """Add `ls`, `add` and `rm` for one record type to `group`.

    `extra_columns` returns the last columns of a line of `ls`.
    """
    collection = group.name or ""

    @group.command(help=f"List the {collection}.")
    @server_options
    def ls(as_json: bool, **options: Any) -> None:
        records = _call_collection(collection, lambda records: records.list(), options, as_json)
        rows = [record.facts for record in records]
        if as_json:
            print_json(rows)
        for row in () if as_json else rows:
            click.echo("  ".join([row[f"{singular}Id"], row["name"], *extra_columns(row)]))

    @group.command(help=f"Create a {singular} and print its id.")
    @click.argument("name")
    @click.option("--description", help="Description.")
    @click.option(
        "--config",
        metavar="JSON",
        callback=parse_json_object,
        help="Configuration, as a JSON object.",
    )
    @server_options
    def add(name: str, description: str | None, config: Any, as_json: bool, **options: Any) -> None:
        record = _call_collection(
            collection,
            lambda records: records.create(name, config, description=description),
            options,
            as_json,
        )
        print_json(record.facts) if as_json else click.echo(record.id)

    suffix = " and all files in it" if singular == "workspace" else ""

    @group.command(
        help=f"Delete a {singular}{suffix}. Agents that refer to it fail when they use it."
    )
    @click.argument("id")
    @click.confirmation_option(prompt=f"Delete this {singular}{suffix}?")
    @server_options
    def rm(id: str, as_json: bool, **options: Any) -> None:
        _call_collection(collection, lambda records: records.delete(id), options, as_json)
        print_json({"deleted": True}) if as_json else click.echo(f"{id}: deleted")
