"""`carrel pull`: downloads an agent's workspace to a directory."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import PathArgument, print_json, progress_bars, run, server_options
from carrel.cli.names import AGENT

if TYPE_CHECKING:
    from carrel_client import MaterializeResult


@click.command()
@click.argument("agent", type=AGENT)
@click.argument("dir", type=PathArgument(file_okay=False, resolve_path=True, path_type=File))
@server_options
@click.option("--stale-ok", is_flag=True, help="If it fails, accept the existing files.")
def pull(agent: str, dir: File, as_json: bool, stale_ok: bool, **options: Any) -> None:
    """Download an agent's workspace to a directory.

    DIR will contain exactly the files of AGENT (an id or a slug): it is replaced atomically, or not
    at all. A directory with other files is not touched. If nothing has changed since the last pull,
    only one small request is made. Exit code 0: DIR has the workspace; 1: failed, and DIR is
    unchanged.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    result = run(
        lambda: _materialize(agent, dir, stale_ok, options),
        as_json=as_json,
        expected=(CarrelError,),
    )
    if as_json:
        print_json(_result_to_json(result))
        return
    if result.stale:
        click.echo(f"Using the earlier files: {result.problem}", err=True)
    click.echo(f"{result.directory}: {len(result.files)} files, {_state_label(result)}")


async def _materialize(
    agent: str, dir: File, stale_ok: bool, options: dict[str, Any]
) -> MaterializeResult:
    from carrel.cli.connection import connect  # noqa: PLC0415 - as above
    from carrel_client import UnusableWorkspace  # noqa: PLC0415 - so that --help stays quick

    if File.cwd().is_relative_to(dir):  # The shell would stay in the replaced directory.
        raise UnusableWorkspace(
            "the target contains the current directory; change to another directory first"
        )
    async with connect(options) as (client, _):
        with progress_bars() as on_progress:
            return await client.materialize(agent, dir, stale_ok=stale_ok, progress=on_progress)


def _state_label(result: MaterializeResult) -> str:
    if result.stale:
        return "not updated"
    return "written" if result.changed else "unchanged"


def _result_to_json(result: MaterializeResult) -> dict[str, Any]:
    facts = {
        "ok": True,
        "directory": result.directory,
        "changed": result.changed,
        "stale": result.stale,
        "fingerprint": result.fingerprint,
        "etag": result.etag,
        "files": dict(result.files),
    }
    return facts | ({"problem": str(result.problem)} if result.stale else {})
