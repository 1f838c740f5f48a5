"""``carrel put``: a file as it should be."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from pathlib import Path as Local
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import PathArgument, fail, print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, File


OVERRIDE: Final = "--accept overrides it for this agent alone"


def etag(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """As a header has it: its quotes are easily lost on the way through a shell."""
    plain = value is not None and value != "*" and '"' not in value
    return f'"{value}"' if plain else value


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@click.argument(
    "source", type=PathArgument(allow_dash=True, path_type=str), metavar="[FILE|-]", default="-"
)
@server_options
@click.option(
    "--if-match", callback=etag, metavar="ETAG", help="Only if it is still this; * if there is one."
)
@click.option("--new", is_flag=True, help="Only if there is none yet.")
@click.option("--from-version", type=click.IntRange(1), help="Make this version the newest again.")
@click.option("--accept", is_flag=True, help="Override a pinned file of an agent.")
@click.option("--reason", help="Why, for the history.")
def put(file: Target, source: str, as_json: bool, from_version: int | None, **given: Any) -> None:
    """Write a file.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. The text comes from FILE, or from
    standard input; with --from-version from the file's own history. Exit code 1: it was refused,
    and nothing was written.
    """
    how = {name: given.pop(name) for name in ("if_match", "new", "accept", "reason")}
    if how["new"] and (how["if_match"] or from_version):
        raise click.UsageError("--new goes with neither --if-match nor --from-version")
    if from_version and source != "-":
        raise click.UsageError("the text comes from FILE or --from-version, not from both")
    text = None if from_version else _read(source, as_json=as_json)

    async def write(desk: AsyncClient) -> File:
        files = files_at(desk, file.place)
        said = {"accept_template_update": how["accept"], "reason": how["reason"]}
        if text is None:
            assert from_version
            match = how["if_match"]
            return await files.restore(file.path, from_version, if_match=match, **said)
        absent = "*" if how["new"] else None
        match = how["if_match"]
        return await files.put(file.path, text, if_match=match, if_none_match=absent, **said)

    written = run_on_server(lambda desk: _advised(write(desk), file), given, as_json=as_json)
    say_written(file, written, text, as_json=as_json)


async def _advised(writing: Coroutine[Any, Any, File], file: Target) -> File:
    """The same, where it is refused for want of --accept in words of this command."""
    from carrel_client import Forbidden  # noqa: PLC0415 - so that --help stays quick

    try:
        return await writing
    except Forbidden as problem:
        if "acceptTemplateUpdate" not in problem.message:
            raise
        raise Forbidden(f"{file.path} is pinned: {OVERRIDE}") from None


def _read(source: str, *, as_json: bool) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Local(source).read_bytes()
    except OSError as problem:
        fail(f"{source}: {problem.strerror}", as_json=as_json)


def say_written(file: Target, written: File, text: bytes | None, *, as_json: bool) -> None:
    """What became of a write; if something else was stored than was sent, that too."""
    redacted = text is not None and written.content.encode() != text
    if as_json:
        print_json({"ok": True, "redacted": redacted, **formatting.told(written)})
        return
    click.echo(f"{file}: version {written.version}, {written.source}, {written.etag}")
    if redacted:
        click.echo("What looks like a secret was redacted before it was stored.", err=True)
