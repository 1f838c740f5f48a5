"""`carrel put`: writes a file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path as Local
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import PathArgument, fail, print_json, server_options
from carrel.cli.file_batches import MAX_TEXT_BYTES, is_small_text
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, FileRow, Files
    from carrel_client.drivers import AsyncDriver

Result = TypeVar("Result")
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
@click.option("--type", "content_type", metavar="TYPE", help="Media type to store.")
@click.option("--reason", help="Reason, for the history.")
def put(file: Target, source: str, as_json: bool, from_version: int | None, **options: Any) -> None:
    """Write a file.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. The content comes from FILE or
    from standard input, byte for byte; with --from-version from the file's history. Exit code 1:
    refused, and nothing was written.
    """
    names = ("if_match", "new", "accept", "content_type", "reason")
    arguments = {name: options.pop(name) for name in names}
    if arguments["new"] and (arguments["if_match"] or from_version):
        raise click.UsageError("--new cannot be combined with --if-match or --from-version")
    if from_version and (source != "-" or arguments["content_type"]):
        raise click.UsageError("--from-version cannot be combined with FILE or --type")
    content = None if from_version else _open_source(source, as_json=as_json)

    async def write(client: AsyncClient) -> _Written:
        files = files_of(client, file.owner)
        metadata = {"accept_template_update": arguments["accept"], "reason": arguments["reason"]}
        if content is None:
            assert from_version
            match = arguments["if_match"]
            restored = await files.restore(file.path, from_version, if_match=match, **metadata)
            return _Written(restored, redacted=False)
        metadata |= {"if_match": arguments["if_match"], "content_type": arguments["content_type"]}
        metadata["if_none_match"] = "*" if arguments["new"] else None
        if isinstance(content, bytes):
            stored = await files.put(file.path, content, **metadata)
            return _Written(stored, redacted=stored.data != content)
        return await _upload(files, file.path, content, metadata)

    written = run_on_server(
        lambda client: _with_pinned_hint(write(client), file), options, as_json=as_json
    )
    print_written(file, written.file, redacted=written.redacted, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Written:
    file: FileRow
    redacted: bool


async def _upload(
    files: Files[AsyncDriver], path: str, content: IO[bytes], metadata: Mapping[str, Any]
) -> _Written:
    """Send the content in parts."""
    import asyncio  # noqa: PLC0415 - so that --help stays quick

    from carrel_client.byte_streams import open_source  # noqa: PLC0415 - so that --help stays quick

    with content:
        opened = await asyncio.to_thread(open_source, content)
        stored = await files.upload(path, opened, **metadata)
    return _Written(stored, redacted=stored.sha256 != opened.sha256.hex())


async def _with_pinned_hint(operation: Coroutine[Any, Any, Result], file: Target) -> Result:
    """Await a write; if a pin forbids it, raise Forbidden with a hint to --accept."""
    from carrel_client import Forbidden  # noqa: PLC0415 - so that --help stays quick

    try:
        return await operation
    except Forbidden as problem:
        if "acceptTemplateUpdate" not in problem.message:
            raise
        raise Forbidden(f"{file.path} is pinned: {PINNED_HINT}") from None


def _open_source(source: str, *, as_json: bool) -> bytes | IO[bytes]:
    """Text as bytes if it is small; otherwise a file to upload."""
    if source == "-":
        first = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        return first if is_small_text(first) else _spool(first)
    try:
        file = Local(source).open("rb")  # noqa: SIM115 - read by the request
        first = file.read(MAX_TEXT_BYTES + 1)
    except OSError as problem:
        fail(f"{source}: {problem.strerror}", as_json=as_json)
    if is_small_text(first):
        file.close()
        return first
    file.seek(0)
    return file


def _spool(first: bytes) -> IO[bytes]:
    """Copy standard input to a temporary file."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - read by the request
    file.write(first)
    shutil.copyfileobj(sys.stdin.buffer, file)
    file.seek(0)
    return file


def print_written(file: Target, written: FileRow, *, redacted: bool, as_json: bool) -> None:
    """Print the result of a write, and whether the stored text was redacted."""
    if as_json:
        print_json({"ok": True, "redacted": redacted, **formatting.file_to_json(written)})
        return
    click.echo(f"{file}: version {written.version}, {written.source}, {written.etag}")
    if redacted:
        click.echo("Likely secrets were redacted before the file was stored.", err=True)
