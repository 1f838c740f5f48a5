"""`carrel agents`: lists the agents."""

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
@click.option("--template", help="Only agents of this template, by id or slug.")
def agents(as_json: bool, template: str | None, **options: Any) -> None:
    """List the agents of the tenant: names, templates, people."""
    rows = run_on_server(lambda client: _load_agents(client, template), options, as_json=as_json)
    if as_json:
        print_json(
            {"agents": [{k: v for k, v in row.items() if k not in _NAME_COLUMNS} for row in rows]}
        )
    else:
        formatting.print_records(rows, ("slug", "name", *_NAME_COLUMNS, "id"))


_NAME_COLUMNS = ("template", "human")
"""Columns with resolved names, for the table only. JSON output has the ids."""


async def _load_agents(client: AsyncClient, template: str | None) -> list[Facts]:
    template_id = None if template is None else (await client.templates.get(template)).id
    templates = {row.id: row.slug for row in await client.templates.list()}
    people = {row.id: row.name for row in await client.people.list()}
    return [
        {
            **row.facts,
            "template": templates.get(row.template_id or ""),
            "human": people.get(row.human_pair_id or ""),
        }
        for row in await client.agents.list()
        if template_id is None or row.template_id == template_id
    ]
