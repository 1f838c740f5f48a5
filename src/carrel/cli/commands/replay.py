"""``carrel replay``: a run that reads what another did."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import FAILED, print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, FileRow


@click.command()
@click.argument("run", metavar="RUN")
@server_options
def replay(run: str, as_json: bool, **given: Any) -> None:
    """Start a run that reads what another did, to the byte.

    Both lists of files are compared before anything is said. The id of the new run stands on
    standard output. Exit code 1: there is no such run, its files were let go, or they differ.
    """
    twin, same, count = run_on_server(lambda desk: _replay(desk, run), given, as_json=as_json)
    if as_json:
        print_json({"ok": same, "files": count, "run": twin})
    else:
        click.echo(twin["runId"])
        told = f"sees the same {count} files" if same else "does not see the same files"
        click.echo(f"{twin['runId']} {told} as {run}", err=True)
    if not same:
        sys.exit(FAILED)


async def _replay(desk: AsyncClient, id: str) -> tuple[Mapping[str, Any], bool, int]:
    original = await desk.run(id)
    seen = _seen(await original.workspace.list())
    twin = await original.replay()
    again = _seen(await twin.workspace.list())
    return twin.facts, seen == again, len(seen)


def _seen(rows: tuple[FileRow, ...]) -> dict[str, tuple[int, str]]:
    return {row.path: (row.version, row.sha256) for row in rows}
