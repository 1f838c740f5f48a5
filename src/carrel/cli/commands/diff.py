"""`carrel diff` compares two versions of a file or any two sides, as `carrel compare` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, ComparedPath

_STYLES: Final = {
    **{"changed": "yellow", "only-left": "red", "only-right": "green"},
    **{"same": "dim", "unknown": "magenta"},
}
_DIFFERENT: Final = ("changed", "only-left", "only-right", "unknown")
_PAGE: Final = 500


@click.command()
@click.argument("left", metavar="WHERE/PATH")
@click.argument("right", required=False, metavar="[RIGHT]")
@server_options
@click.option(
    "--from", "old", type=click.IntRange(0), help="Version; 0 is the empty file before the first."
)
@click.option("--to", "new", type=click.IntRange(0), help="Version; the newest by default.")
def diff(
    left: str, right: str | None, as_json: bool, old: int | None, new: int | None, **options: Any
) -> None:
    """Compare two versions of a file, or two sides.

    By default the newest and the one before. WHERE is an agent, templates/NAME, defaults or
    workspaces/ID. For an agent, the versions of its own layer are compared. Exit code 0, whether
    they differ or not.

    With a second argument, both are references of carrel compare, whose diffs are printed:

    \b
    carrel diff agent:ada agent:bob
    carrel diff run:run_01 agent:ada/SOUL.md
    """
    if right is not None:
        if old is not None or new is not None:
            raise click.UsageError("--from and --to are for one file; write @vN after a reference")
        _compare(left, right, _DIFFERENT, {"diff": True}, options, as_json=as_json)
        return
    file: Target = FILE.convert(left, None, click.get_current_context())
    text = run_on_server(
        lambda client: files_of(client, file.owner).diff(file.path, old, new),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json({"path": file.path, "from": old, "to": new, "diff": text})
    else:
        formatting.print_diff(text)


@click.command()
@click.argument("left")
@click.argument("right")
@server_options
@click.option("--prefix", default="", help="Only paths that start with this.")
@click.option("--all", "with_same", is_flag=True, help="List equal files too.")
@click.option("--raw", is_flag=True, help="Compare the texts before placeholders are replaced.")
@click.option("--diff", is_flag=True, help="Print unified diffs.")
def compare(left: str, right: str, as_json: bool, with_same: bool, **options: Any) -> None:
    """Compare the files of two agents, layers, runs or versions.

    A side is agent:NAME, template:NAME, workspace:ID, defaults or run:ID; then /PATH for one file;
    then @TIME (2026-11-01T00:00:00Z) for the files of a time, or @vN for a version of the file.
    Exit code 0, whether they differ or not.

    \b
    carrel compare agent:ada agent:bob
    carrel compare agent:ada@2026-11-01T00:00:00Z agent:ada --diff
    carrel compare template:support/SOUL.md agent:ada
    """

    filters = {name: options.pop(name) for name in ("prefix", "raw", "diff")}
    statuses = () if with_same else _DIFFERENT
    _compare(left, right, statuses, filters, options, as_json=as_json)


def _compare(
    left: str,
    right: str,
    statuses: Sequence[str],
    filters: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print the comparison of two references: a table, or diffs if the filters ask for them."""

    async def load(client: AsyncClient) -> list[ComparedPath]:
        rows: list[ComparedPath] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await client.compare(
                left, right, statuses=statuses, cursor=cursor, limit=_PAGE, **filters
            )
            rows += page.items
            cursor = page.next
        return rows

    rows = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json({"left": left, "right": right, "items": [dict(row.facts) for row in rows]})
    elif filters["diff"]:
        for row in rows:
            _print_diff(row)
    else:
        table = [_row(row) for row in rows]
        headers = ("path", "status", "left", "right")
        formatting.print_table(headers, table, right_aligned=("left", "right"))


def _print_diff(row: ComparedPath) -> None:
    formatting.print_diff(row.diff or "")
    if row.diff is None or row.diff_truncated:
        reason = "too large for a diff" if row.diff is None else "the diff is cut"
        click.echo(formatting.printable(f"{row.path}: {row.status}, {reason}"), err=True)
    elif row.status == "unknown":
        click.echo(formatting.printable(f"{row.path}: its versions were pruned"), err=True)


def _row(row: ComparedPath) -> list[formatting.Cell]:
    versions = ("" if side is None else f"v{side.version}" for side in (row.left, row.right))
    return [row.path, (row.status, _STYLES.get(row.status, "")), *versions]
