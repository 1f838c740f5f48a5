"""`carrel rm`: deletes a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.commands.file_tree import commit_to_json
from carrel.cli.commands.put import quote_etag
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CommitResult


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option(
    "--if-match",
    callback=quote_etag,
    metavar="ETAG",
    help="Delete only if the current ETag matches.",
)
@click.option("--recursive", "-r", is_flag=True, help="Delete a directory and all files in it.")
@click.option("--reason", help="Reason, for the history.")
def rm(
    file: Target,
    as_json: bool,
    if_match: str | None,
    recursive: bool,
    reason: str | None,
    **options: Any,
) -> None:
    """Delete a file, or an agent's override of one.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. After an override is removed, the
    inherited file shows again. Earlier versions stay: carrel log lists them, and carrel put
    --from-version restores one. With -r all files of a directory are deleted, or none.
    """
    if recursive:
        if if_match is not None:
            raise click.UsageError("--recursive cannot be combined with --if-match")
        _remove_directory(file, reason, options, as_json=as_json)
        return

    async def remove(client: AsyncClient) -> str | None:
        from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

        files = files_of(client, file.owner)
        await files.delete(file.path, if_match=if_match, reason=reason)
        try:
            return (await files.explain(file.path)).source
        except CarrelError:  # The file is deleted even if the new state cannot be loaded.
            return None

    source = run_on_server(remove, options, as_json=as_json)
    if as_json:
        print_json({"ok": True, "path": file.path, "source": source})
    else:
        click.echo(f"{file}: removed" + (f"; inherited from {source}" if source else ""))


def _remove_directory(
    directory: Target, reason: str | None, options: dict[str, Any], *, as_json: bool
) -> None:
    async def remove(client: AsyncClient) -> CommitResult:
        files = files_of(client, directory.owner)
        return await files.remove_directory(directory.path, recursive=True, reason=reason)

    result = run_on_server(remove, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
        return
    for change in result.changes:
        click.echo(formatting.printable(f"{directory.owner}/{change.path}: removed"))
