"""``carrel rm``: a file no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli.commands.put import etag
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--if-match", callback=etag, metavar="ETAG", help="Only if it is still this.")
@click.option("--reason", help="Why, for the history.")
def rm(file: Target, as_json: bool, if_match: str | None, reason: str | None, **given: Any) -> None:
    """Remove a file; an agent's own gives way to what lies beneath.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Its versions stay: carrel log
    shows them, and carrel put --from-version brings one back.
    """

    async def remove(desk: AsyncClient) -> str | None:
        from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

        files = files_at(desk, file.place)
        await files.delete(file.path, if_match=if_match, reason=reason)
        try:
            return (await files.explain(file.path)).source
        except CarrelError:  # It is removed, whatever may be said of what is left.
            return None

    source = run_on_server(remove, given, as_json=as_json)
    if as_json:
        print_json({"ok": True, "path": file.path, "source": source})
    else:
        click.echo(f"{file}: removed" + (f"; {source} shows again" if source else ""))
