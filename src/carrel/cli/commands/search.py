"""`carrel search`: finds files, memories and sessions."""

from __future__ import annotations

from typing import Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.record_output import page_rows

_KINDS: Final = click.Choice(["files", "memories", "sessions"])
_COLUMNS: Final = ("kind", "whose", "where", "snippet", "at")


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--kind", "kinds", type=_KINDS, multiple=True, help="Only these; may be repeated.")
@click.option("--scope", type=click.Choice(["shared"]), help="What a shared session may see.")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Most results."
)
@server_options
def search(words: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Find files, memories and sessions by their words."""
    query = {name: options.pop(name) for name in ("kinds", "scope", "limit")}
    result = run_on_server(
        lambda client: client.search(" ".join(words), **query), options, as_json=as_json
    )
    if as_json:
        print_json(dict(result.facts))
        return
    rows = [
        {**hit.facts, "whose": hit.scope_name or hit.scope, "where": _describe_place(hit)}
        for hit in result.items
    ]
    formatting.print_records(page_rows(rows), _COLUMNS)
    if not result.complete:
        click.echo("there may be more: the search stopped at its limits", err=True)


def _describe_place(hit: Any) -> str:
    """A file as `carrel cat` names it, or the agent and what it has."""
    if hit.path is None:
        return f"{hit.agent_id}: {hit.session_id or hit.memory_id}"
    template, workspace = hit.template_id, hit.workspace_id
    place = f"templates/{template}" if template else f"workspaces/{workspace}"
    return f"{hit.agent_id or (place if template or workspace else hit.scope)}/{hit.path}"
