"""``carrel explain``: why a file is what it is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import Explanation, LayerEntry


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
def explain(file: Target, as_json: bool, **given: Any) -> None:
    """Show what every layer says of a path, and why one of them won.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID.
    """
    found = run_on_server(
        lambda desk: files_at(desk, file.place).explain(file.path), given, as_json=as_json
    )
    if as_json:
        print_json(_told(found))
        return
    heads = ("layer", "name", "version", "content", "over")
    formatting.table(heads, [_row(said) for said in found.layers], right=("version",))
    click.echo(formatting.plain(f"{found.source or 'nothing'}: {found.reason}"))


def _row(said: LayerEntry) -> list[formatting.Cell]:
    version = "" if said.version is None else str(said.version)
    silent = "—" if said.version is None else "deleted"
    content: formatting.Cell = formatting.short(said.sha256) or (silent, "dim")
    return [said.kind, said.name, version, content, formatting.short(said.base_sha256)]


def _told(found: Explanation) -> dict[str, Any]:
    facts = dataclasses.asdict(found)
    for layer in facts["layers"]:
        layer["baseSha256"] = layer.pop("base_sha256")
    facts["why"] = facts.pop("reason")
    return facts
