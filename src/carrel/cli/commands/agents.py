"""``carrel agents``: who is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient

Facts = Mapping[str, Any]


@click.command()
@server_options
@click.option("--template", help="Only those that follow this one, by id or slug.")
def agents(as_json: bool, template: str | None, **given: Any) -> None:
    """List the agents of the tenant.

    With the templates that they follow and whom they work for.
    """
    rows = run_on_server(lambda desk: _look(desk, template), given, as_json=as_json)
    if as_json:
        print_json({"agents": [{k: v for k, v in row.items() if k not in _SHOWN} for row in rows]})
    else:
        formatting.facts_table(rows, ("slug", "name", *_SHOWN, "id"))


_SHOWN = ("template", "human")
"""What is looked up for people; programs are told the ids."""


async def _look(desk: AsyncClient, template: str | None) -> list[Facts]:
    wanted = None if template is None else (await desk.templates.get(template)).id
    templates = {row.id: row.slug for row in await desk.templates.list()}
    people = {row.id: row.name for row in await desk.people.list()}
    return [
        {
            **row.facts,
            "template": templates.get(row.template_id or ""),
            "human": people.get(row.human_pair_id or ""),
        }
        for row in await desk.agents.list()
        if wanted is None or row.template_id == wanted
    ]
