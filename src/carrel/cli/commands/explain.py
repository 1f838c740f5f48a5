"""`carrel explain`: shows which layer a file comes from."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import Explanation, LayerEntry


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
def explain(file: Target, as_json: bool, **options: Any) -> None:
    """Show a path in every layer, and why one of them applies.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID.
    """
    explanation = run_on_server(
        lambda client: files_of(client, file.owner).explain(file.path), options, as_json=as_json
    )
    if as_json:
        print_json(_explanation_to_json(explanation))
        return
    headers = ("layer", "name", "version", "content", "over")
    formatting.print_table(
        headers, [_layer_row(layer) for layer in explanation.layers], right_aligned=("version",)
    )
    click.echo(formatting.printable(f"{explanation.source or 'nothing'}: {explanation.reason}"))


def _layer_row(layer: LayerEntry) -> list[formatting.Cell]:
    version = "" if layer.version is None else str(layer.version)
    placeholder = "—" if layer.version is None else "deleted"
    content: formatting.Cell = formatting.short_digest(layer.sha256) or (placeholder, "dim")
    return [layer.kind, layer.name, version, content, formatting.short_digest(layer.base_sha256)]


def _explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    facts = dataclasses.asdict(explanation)
    for layer in facts["layers"]:
        layer["baseSha256"] = layer.pop("base_sha256")
    facts["why"] = facts.pop("reason")
    return facts
