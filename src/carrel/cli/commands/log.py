"""`carrel log`: lists the versions of a file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import format_size, print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Version

_PAGE = 500


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
    versions are listed too. To see which layer a file comes from, use carrel explain.
    """

    async def read(client: AsyncClient) -> list[Version]:
        files = files_of(client, file.owner)
        versions: list[Version] = []
        while len(versions) < limit:
            before = versions[-1].version if versions else None
            count = min(_PAGE, limit - len(versions))
            page = await files.history(file.path, before=before, limit=count)
            versions += page
            if len(page) < count:
                break
        return versions

    versions = run_on_server(read, options, as_json=as_json)
    if as_json:
        print_json(
            {"path": file.path, "versions": [_version_to_json(version) for version in versions]}
        )
        return
    headers = ("version", "layer", "when", "author", "size", "reason")
    formatting.print_table(
        headers, [_version_row(version) for version in versions], right_aligned=("version", "size")
    )


def _version_row(version: Version) -> list[formatting.Cell]:
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
    ]


def _version_to_json(version: Version) -> dict[str, Any]:
    facts = dataclasses.asdict(version)
    wire_names = {"updated_at": "updatedAt", "run_id": "runId", "content_type": "contentType"}
    facts["updated_at"] = version.updated_at.isoformat()
    return {wire_names.get(name, name): fact for name, fact in facts.items()}
