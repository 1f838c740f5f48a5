"""`carrel replay`: starts a run on the snapshot of another run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, FileRow


@click.command()
@click.argument("run", metavar="RUN")
@server_options
def replay(run: str, as_json: bool, **options: Any) -> None:
    """Start a run that reads the same files as another run.

    Compares both file lists, and prints the id of the new run. Exit code 1: no such run, its files
    were released, or the lists differ.
    """
    new_run, same, count = run_on_server(
        lambda client: _replay(client, run), options, as_json=as_json
    )
    if as_json:
        print_json({"ok": same, "files": count, "run": new_run})
    else:
        click.echo(new_run["runId"])
        comparison = f"sees the same {count} files" if same else "does not see the same files"
        click.echo(f"{new_run['runId']} {comparison} as {run}", err=True)
    if not same:
        sys.exit(EXIT_FAILED)


async def _replay(client: AsyncClient, id: str) -> tuple[Mapping[str, Any], bool, int]:
    original = await client.run(id)
    original_files = _versions_by_path(await original.workspace.list())
    new_run = await original.replay()
    replayed_files = _versions_by_path(await new_run.workspace.list())
    return new_run.facts, original_files == replayed_files, len(original_files)


def _versions_by_path(rows: tuple[FileRow, ...]) -> dict[str, tuple[int, str]]:
    return {row.path: (row.version, row.sha256) for row in rows}
