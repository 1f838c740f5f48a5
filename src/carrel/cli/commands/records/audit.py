"""`carrel audit`: shows and exports the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import Instant, print_json, server_options
from carrel.cli.names import PERSON, find_person_id

if TYPE_CHECKING:
    from carrel_client import AsyncClient, AuditEntry


@click.command()
@server_options
@click.option("--who", "author", type=PERSON, default="", help="Only this person, agent or key.")
@click.option("--action", default="", help="Only this action, such as `create an agent`.")
@click.option("--object", "object_name", default="", help="Only this record, as type/id, or type.")
@click.option("--from", "start", type=Instant(), help="Earliest time (UTC).")
@click.option("--to", "end", type=Instant(), help="Latest time (UTC), exclusive.")
@click.option("--limit", default=50, type=click.IntRange(1, 500), show_default=True)
@click.option("--csv", "as_csv", is_flag=True, help="Export all matching entries as CSV.")
def audit(  # noqa: PLR0913, PLR0917 - options of the command
    as_json: bool,
    author: str,
    action: str,
    object_name: str,
    start: datetime | None,
    end: datetime | None,
    limit: int,
    as_csv: bool,
    **options: Any,
) -> None:
    """Show the audit log, newest first.

    Authors are named by id, people also by e-mail address.
    """
    conditions: dict[str, Any] = {"author": author, "action": action, "object": object_name}
    conditions |= {"start": start, "end": end}

    async def load(client: AsyncClient) -> tuple[AuditEntry, ...]:
        conditions["author"] = await find_person_id(client, author)
        return await client.audit.list(**conditions, limit=limit)

    async def export(client: AsyncClient) -> bytes:
        conditions["author"] = await find_person_id(client, author)
        return await client.audit.export(**conditions)

    if as_csv:
        click.echo(run_on_server(export, options, as_json=as_json), nl=False)
        return
    entries = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json({"entries": [entry.facts for entry in entries]})
    else:
        formatting.print_records(list(map(_row, entries)), ("at", "by", "action", "why", "objects"))


def _row(entry: AuditEntry) -> dict[str, Any]:
    names = [item.get("name") or item.get("id") for item in entry.objects]
    by = entry.author_name or entry.author
    objects = ", ".join(dict.fromkeys(map(str, names)))
    return {**entry.facts, "by": by, "objects": objects}
