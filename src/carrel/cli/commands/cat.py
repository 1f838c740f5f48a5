"""`carrel cat`: prints a file."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import PathArgument, fail, print_json, server_options
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient
    from carrel_client.file_bytes import DownloadedFile


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--raw", is_flag=True, help="Show the unrendered text.")
@click.option("--version", type=click.IntRange(1), help="Show this version.")
@click.option(
    "-o",
    "--output",
    type=PathArgument(path_type=str),
    metavar="FILE",
    help="Write to this file, which is replaced when all bytes have arrived.",
)
def cat(file: Target, as_json: bool, output: str | None, **options: Any) -> None:
    """Show a file, or one of its versions.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. In a pipe and with --output the
    bytes are those of the file, whatever its type. An earlier version is always shown unrendered,
    as it was stored.
    """
    query = {name: options.pop(name) for name in ("raw", "version")}
    if output is not None or not (as_json or formatting.is_terminal()):
        target = output or sys.stdout.buffer
        downloaded = _download(file, target, query, options, as_json=as_json)
        if as_json:
            print_json(_to_json(file, downloaded))
        return
    response = run_on_server(
        lambda client: files_of(client, file.owner).get(file.path, **query),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json(formatting.file_to_json(response))
    elif response.encoding is not None:
        fail(f"{file} is not text ({response.content_type}); use --output or a pipe", as_json=False)
    else:
        formatting.print_content(response.content)


def _download(
    file: Target,
    target: str | IO[bytes],
    query: dict[str, Any],
    options: dict[str, Any],
    *,
    as_json: bool,
) -> DownloadedFile:
    """Write the bytes of a file as they arrive."""

    async def download(client: AsyncClient) -> DownloadedFile:
        return await files_of(client, file.owner).download(file.path, target, **query)

    try:
        return run_on_server(download, options, as_json=as_json)
    except OSError as problem:
        name = target if isinstance(target, str) else "standard output"
        fail(f"{name}: {problem.strerror}", as_json=as_json)


def _to_json(file: Target, downloaded: DownloadedFile) -> dict[str, Any]:
    return {
        "ok": True,
        "path": file.path,
        "contentType": downloaded.content_type,
        "version": downloaded.version,
        "etag": downloaded.etag,
        "size": downloaded.size,
        "sha256": downloaded.sha256,
    }
