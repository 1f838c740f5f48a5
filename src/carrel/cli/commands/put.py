"""`carrel put`: writes a file."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from pathlib import Path as Local
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import PathArgument, fail, print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, File


PINNED_HINT: Final = "use --accept to override it for this agent only"


def quote_etag(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Add the quotes of an ETag, which are easily lost in a shell."""
    plain = value is not None and value != "*" and '"' not in value
    return f'"{value}"' if plain else value


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@click.argument(
    "source", type=PathArgument(allow_dash=True, path_type=str), metavar="[FILE|-]", default="-"
)
@server_options
@click.option(
    "--if-match",
    callback=quote_etag,
    metavar="ETAG",
    help="Write only if the current ETag matches; *: only if it exists.",
)
@click.option("--new", is_flag=True, help="Write only if the file does not exist.")
@click.option("--from-version", type=click.IntRange(1), help="Restore this version.")
@click.option("--accept", is_flag=True, help="Override a pinned file of an agent.")
@click.option("--reason", help="Reason, for the history.")
def put(file: Target, source: str, as_json: bool, from_version: int | None, **options: Any) -> None:
    """Write a file.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. The text comes from FILE or from
    standard input; with --from-version from the file's history. Exit code 1: refused, and nothing
    was written.
    """
    arguments = {name: options.pop(name) for name in ("if_match", "new", "accept", "reason")}
    if arguments["new"] and (arguments["if_match"] or from_version):
        raise click.UsageError("--new cannot be combined with --if-match or --from-version")
    if from_version and source != "-":
        raise click.UsageError("FILE and --from-version cannot be combined")
    text = None if from_version else _read_source(source, as_json=as_json)

    async def write(client: AsyncClient) -> File:
        files = files_of(client, file.owner)
        metadata = {"accept_template_update": arguments["accept"], "reason": arguments["reason"]}
        if text is None:
            assert from_version
            match = arguments["if_match"]
            return await files.restore(file.path, from_version, if_match=match, **metadata)
        absent = "*" if arguments["new"] else None
        match = arguments["if_match"]
        return await files.put(file.path, text, if_match=match, if_none_match=absent, **metadata)

    written = run_on_server(
        lambda client: _with_pinned_hint(write(client), file), options, as_json=as_json
    )
    print_written(file, written, text, as_json=as_json)


async def _with_pinned_hint(operation: Coroutine[Any, Any, File], file: Target) -> File:
    """Await a write; if a pin forbids it, raise Forbidden with a hint to --accept."""
    from carrel_client import Forbidden  # noqa: PLC0415 - so that --help stays quick

    try:
        return await operation
    except Forbidden as problem:
        if "acceptTemplateUpdate" not in problem.message:
            raise
        raise Forbidden(f"{file.path} is pinned: {PINNED_HINT}") from None


def _read_source(source: str, *, as_json: bool) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Local(source).read_bytes()
    except OSError as problem:
        fail(f"{source}: {problem.strerror}", as_json=as_json)


def print_written(file: Target, written: File, text: bytes | None, *, as_json: bool) -> None:
    """Print the result of a write, and whether the stored text was redacted."""
    redacted = text is not None and written.content.encode() != text
    if as_json:
        print_json({"ok": True, "redacted": redacted, **formatting.file_to_json(written)})
        return
    click.echo(f"{file}: version {written.version}, {written.source}, {written.etag}")
    if redacted:
        click.echo("Likely secrets were redacted before the file was stored.", err=True)
