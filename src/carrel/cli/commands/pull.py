"""``carrel pull``: an agent's workspace as a directory."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import PathArgument, print_json, progress_bars, run, server_options

if TYPE_CHECKING:
    from carrel_client import MaterializeResult


@click.command()
@click.argument("agent")
@click.argument("dir", type=PathArgument(file_okay=False, resolve_path=True, path_type=File))
@server_options
@click.option("--stale-ok", is_flag=True, help="If it fails, be content with what is there.")
def pull(agent: str, dir: File, as_json: bool, stale_ok: bool, **given: Any) -> None:
    """Make a directory hold an agent's workspace.

    DIR will hold exactly the files that the server serves for AGENT (an id or a slug): it is
    replaced as a whole, or not at all. One that holds anything else is left alone. If nothing has
    changed since the last time, one small request tells so. Exit code 0: DIR holds the workspace;
    1: it could not be had, and DIR is as it was.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    found = run(lambda: _pull(agent, dir, stale_ok, given), as_json=as_json, expects=(CarrelError,))
    if as_json:
        print_json(_told(found))
        return
    if found.stale:
        click.echo(f"The server could not be asked: {found.problem}", err=True)
    click.echo(f"{found.directory}: {len(found.files)} files, {_state(found)}")


async def _pull(agent: str, dir: File, stale_ok: bool, given: dict[str, Any]) -> MaterializeResult:
    from carrel.cli.connection import connect  # noqa: PLC0415 - as above
    from carrel_client import UnusableWorkspace  # noqa: PLC0415 - so that --help stays quick

    if File.cwd().is_relative_to(dir):  # A shell would stay in what was there before.
        raise UnusableWorkspace("you are in that directory; pull into it from outside")
    async with connect(given) as (desk, _):
        with progress_bars() as watch:
            return await desk.materialize(agent, dir, stale_ok=stale_ok, progress=watch)


def _state(found: MaterializeResult) -> str:
    if found.stale:
        return "as they were"
    return "written" if found.changed else "unchanged"


def _told(found: MaterializeResult) -> dict[str, Any]:
    facts = {
        "ok": True,
        "directory": found.directory,
        "changed": found.changed,
        "stale": found.stale,
        "fingerprint": found.fingerprint,
        "etag": found.etag,
        "files": dict(found.files),
    }
    return facts | ({"problem": str(found.problem)} if found.stale else {})
