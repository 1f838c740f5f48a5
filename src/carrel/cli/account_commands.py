"""Commands for what an account describes: list, add and remove, by kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from carrel.cli.connection import connect
from carrel.cli.console import print_json, run, server_options

Row = Mapping[str, Any]


def _json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A JSON object. Raises BadParameter."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise click.BadParameter("this is not JSON") from None
    if not isinstance(found, dict):
        raise click.BadParameter("this is no JSON object")
    return found


def _done(kind: str, work: Callable[[Any], Any], given: Mapping[str, Any], as_json: bool) -> Any:
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def ask() -> Any:
        async with connect(given) as (desk, _):
            return await work(getattr(desk, kind))

    return run(ask, as_json=as_json, expects=(CarrelError,))


def add_record_commands(
    group: click.Group, word: str, told: Callable[[Row], Sequence[str]]
) -> None:
    """Add ``ls``, ``add`` and ``rm`` of one kind; a line of ``ls`` ends in what is ``told``."""
    kind = group.name or ""

    @group.command(help=f"List the {kind}.")
    @server_options
    def ls(as_json: bool, **given: Any) -> None:
        records = _done(kind, lambda records: records.list(), given, as_json)
        found = [record.facts for record in records]
        if as_json:
            print_json(found)
        for row in () if as_json else found:
            click.echo("  ".join([row[f"{word}Id"], row["name"], *told(row)]))

    @group.command(help=f"Describe a new {word} and say its id.")
    @click.argument("name")
    @click.option("--description", help="What it is for.")
    @click.option("--config", metavar="JSON", callback=_json, help="As in the guide, an object.")
    @server_options
    def add(name: str, description: str | None, config: Any, as_json: bool, **given: Any) -> None:
        record = _done(
            kind,
            lambda records: records.create(name, config, description=description),
            given,
            as_json,
        )
        print_json(record.facts) if as_json else click.echo(record.id)

    more = " and all files in it" if word == "workspace" else ""

    @group.command(help=f"Delete a {word}{more}. Agents that refer to it fail when they use it.")
    @click.argument("id")
    @click.confirmation_option(prompt=f"Delete this {word}{more}?")
    @server_options
    def rm(id: str, as_json: bool, **given: Any) -> None:
        _done(kind, lambda records: records.delete(id), given, as_json)
        print_json({"deleted": True}) if as_json else click.echo(f"{id}: deleted")
