"""``carrel ls``: which files there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import LONGEST_PREFIX, files_at, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import TARGET, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, FileRow

_STYLES: Final = {"pinned": "yellow", "managed": "magenta"}


@click.command()
@click.argument("where", type=TARGET, metavar="WHERE[/PATH]")
@server_options
@click.option("--long", "-l", is_flag=True, help="Say where each comes from, its class and more.")
def ls(where: Target, as_json: bool, long: bool, **given: Any) -> None:
    """List files.

    WHERE is an agent by its id or slug (finn, or agents/finn), templates/NAME, defaults or
    workspaces/ID. Of an agent all files are listed that it sees; with a PATH, that file or what is
    within that directory.
    """

    async def look(desk: AsyncClient) -> tuple[FileRow, ...]:
        from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

        rows = await files_at(desk, where.place).list(where.path[:LONGEST_PREFIX])
        within = f"{where.path}/"
        found = tuple(r for r in rows if not where.path or f"{r.path}/".startswith(within))
        if where.path and not found:
            raise NotFound(f"there is nothing at {where}")
        return found

    found = run_on_server(look, given, as_json=as_json)
    if as_json:
        print_json({"files": [formatting.told(row) for row in found]})
    elif long:
        _show(found)
    else:
        for row in found:
            click.secho(formatting.plain(row.path), fg=_STYLES.get(row.file_class))


def _show(found: tuple[FileRow, ...]) -> None:
    heads = ("path", "version", "source", "class", "updated", "")
    rows = [
        (
            (row.path, _STYLES.get(row.file_class, "")),
            str(row.version),
            row.source,
            row.file_class,
            formatting.when(row.updated_at),
            _remark(row),
        )
        for row in found
    ]
    formatting.table(heads, rows, right=("version",))


def _remark(row: FileRow) -> formatting.Cell:
    if row.error:
        return (row.error, "red")
    return ("update available", "yellow") if row.update_available else ""
