"""`carrel connect`: prints snippets that connect runtimes to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import AGENT

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Connection, ConnectionSnippet

_POLL_SECONDS: Final = 1.0


@click.command()
@click.argument("agent", type=AGENT)
@click.argument("name", required=False)
@click.option("--create-key", is_flag=True, help="Create a key of the agent and insert it.")
@click.option("--wait", is_flag=True, help="With --create-key: wait for the key's first request.")
@server_options
def connect(
    agent: str, name: str | None, create_key: bool, wait: bool, as_json: bool, **options: Any
) -> None:
    """Print a snippet that connects a runtime to an agent.

    AGENT is an id or a slug, NAME the id of a snippet, such as curl, python, langgraph or cursor;
    without it the names are listed.
    """
    if wait and not create_key:
        raise click.UsageError("--wait needs --create-key")
    loaded = run_on_server(lambda client: client.agents.connection(agent), options, as_json=as_json)
    if name is None:
        _print_names(loaded, as_json)
        return
    snippet = _find_snippet(loaded, name)
    if not create_key:
        _print_snippet(snippet, snippet.text, as_json)
        return
    created = run_on_server(
        lambda client: client.keys.create(f"connect {name}", "agent", agent_id=agent),
        options,
        as_json=as_json,
    )
    _print_snippet(snippet, snippet.text.replace(loaded.key_placeholder, created.key), as_json)
    if wait:
        click.echo("waiting for the first request with this key …", err=True)
        run_on_server(lambda client: _wait_for_use(client, created.id), options, as_json=as_json)
        click.echo("connected", err=True)


def _print_names(loaded: Connection, as_json: bool) -> None:
    if as_json:
        print_json(loaded.facts)
        return
    rows = [{"id": row.id, "name": row.name, "file": row.file} for row in loaded.snippets]
    formatting.print_records(rows, ("id", "name", "file"))


def _find_snippet(loaded: Connection, name: str) -> ConnectionSnippet:
    for snippet in loaded.snippets:
        if snippet.id == name:
            return snippet
    names = ", ".join(row.id for row in loaded.snippets)
    raise click.UsageError(f"no snippet {name!r}; there are: {names}")


def _print_snippet(snippet: ConnectionSnippet, text: str, as_json: bool) -> None:
    if as_json:
        print_json({**snippet.facts, "text": text})
        return
    for note in filter(None, (snippet.install, snippet.file)):
        click.echo(f"# {note}", err=True)
    click.echo(text, nl=False)


async def _wait_for_use(client: AsyncClient, key_id: str) -> None:
    import asyncio  # noqa: PLC0415 - so that --help stays quick

    while True:
        if (await client.keys.get(key_id)).last_used_at is not None:
            return
        await asyncio.sleep(_POLL_SECONDS)
