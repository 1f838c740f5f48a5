"""``carrel log``: what became of a file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import print_json, server_options, size
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Version

_PAGE = 500


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many.")
def log(file: Target, as_json: bool, limit: int, **given: Any) -> None:
    """List the versions of a file, newest first, deletions included.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Of an agent it is its own
    history; where a file comes from a template or the defaults, which carrel explain tells, ask
    there.
    """

    async def read(desk: AsyncClient) -> list[Version]:
        files = files_at(desk, file.place)
        found: list[Version] = []
        while len(found) < limit:
            before = found[-1].version if found else None
            count = min(_PAGE, limit - len(found))
            page = await files.history(file.path, before=before, limit=count)
            found += page
            if len(page) < count:
                break
        return found

    found = run_on_server(read, given, as_json=as_json)
    if as_json:
        print_json({"path": file.path, "versions": [_told(one) for one in found]})
        return
    heads = ("version", "when", "author", "size", "reason")
    formatting.table(heads, [_row(one) for one in found], right=("version", "size"))


def _row(one: Version) -> list[formatting.Cell]:
    held: formatting.Cell = ("deleted", "red") if one.deleted else size(one.size or 0)
    return [str(one.version), formatting.when(one.updated_at), one.author, held, one.reason]


def _told(one: Version) -> dict[str, Any]:
    facts = dataclasses.asdict(one)
    renamed = {"updated_at": "updatedAt", "run_id": "runId", "content_type": "contentType"}
    facts["updated_at"] = one.updated_at.isoformat()
    return {renamed.get(name, name): fact for name, fact in facts.items()}
