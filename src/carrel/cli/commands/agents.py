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
@click.option("--tag", help="Only agents with this tag.")
@click.option("--search", "q", default="", help="Only agents with these words in name or slug.")
def agents(as_json: bool, template: str | None, tag: str | None, q: str, **options: Any) -> None:
    """List the agents of the tenant: names, templates, people, tags."""

    async def load(client: AsyncClient) -> list[Facts]:
        return await _load_agents(client, q=q, template=template, tag=tag)

    rows = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json(
            {"agents": [{k: v for k, v in row.items() if k not in _NAME_COLUMNS} for row in rows]}
        )
    else:
        table = [{**row, "tags": " ".join(row.get("tags", ()))} for row in rows]
        formatting.print_records(table, ("slug", "name", *_NAME_COLUMNS, "tags", "id"))


_NAME_COLUMNS = ("template", "human")
"""Columns with resolved names, for the table only. JSON output has the ids."""


async def _load_agents(client: AsyncClient, **filters: Any) -> list[Facts]:
    templates = {row.id: row.slug for row in await client.templates.list()}
    people = {row.id: row.name for row in await client.people.list()}
    return [
        {
            **row.facts,
            "template": templates.get(row.template_id or ""),
            "human": people.get(row.human_pair_id or ""),
        }
        for row in await client.agents.list(**filters)
    ]
