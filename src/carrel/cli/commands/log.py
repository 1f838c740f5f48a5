"""`carrel log`: lists the versions of a file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import format_size, print_json, server_options
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Version


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Maximum number of versions.",
)
def log(file: Target, as_json: bool, limit: int, **options: Any) -> None:
    """List the versions and deletions of a file, newest first.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. For an agent, inherited
    versions are listed too. The log of a moved file goes on with the versions at its earlier paths.
    To see which layer a file comes from, use carrel explain.
    """

    async def read(client: AsyncClient) -> tuple[Version, ...]:
        return await files_of(client, file.owner).history(file.path, limit=limit)

    versions = run_on_server(read, options, as_json=as_json)
    if as_json:
        print_json(
            {"path": file.path, "versions": [_version_to_json(version) for version in versions]}
        )
        return
    headers = ("version", "layer", "when", "author", "size", "reason", "")
    rows = [_version_row(version, file.path) for version in versions]
    formatting.print_table(headers, rows, right_aligned=("version", "size"))


def _version_row(version: Version, path: str) -> list[formatting.Cell]:
    size_text: formatting.Cell = (
        ("deleted", "red") if version.deleted else format_size(version.size or 0)
    )
    return [
        str(version.version),
        version.layer,
        formatting.format_time(version.updated_at),
        version.author,
        size_text,
        version.reason,
        _place_cell(version, path),
    ]


def _place_cell(version: Version, path: str) -> formatting.Cell:
    """Where a version came from, or its path if that is not the listed one."""
    source = version.source
    if source is not None:
        verb = "moved" if source.kind == "move" else "copied"
        return formatting.printable(f"{verb} from {source.path} version {source.version}")
    return "" if version.path == path else formatting.printable(f"at {version.path}")


def _version_to_json(version: Version) -> dict[str, Any]:
    facts = dataclasses.asdict(version)
    wire_names = {"updated_at": "updatedAt", "run_id": "runId", "content_type": "contentType"}
    wire_names["file_id"] = "fileId"
    facts["updated_at"] = version.updated_at.isoformat()
    return {wire_names.get(name, name): fact for name, fact in facts.items()}
