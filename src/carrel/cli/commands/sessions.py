"""`carrel sessions`: lists an agent's sessions and prints transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import print_json, run, server_options
from carrel.cli.formatting import printable
from carrel.cli.provenance_report import print_provenance
from carrel.cli.tool_results import describe_result, structured_result

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Provenance

_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}
_MAX_LINE_CHARS = 100


@click.command()
@click.argument("agent")
@click.argument("id", required=False)
@server_options
@click.option("--jsonl", is_flag=True, help="Print the session's transcript as JSON lines.")
@click.option(
    "--provenance",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Show the run that wrote this entry, and what it was made of.",
)
@click.option("--search", metavar="WORDS", help="Only sessions that contain these words.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Only sessions of this scope.")
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=50,
    show_default=True,
    help="Maximum number of sessions or entries.",
)
def sessions(
    agent: str,
    id: str | None,
    as_json: bool,
    jsonl: bool,
    provenance: int | None,
    **options: Any,
) -> None:
    """List an agent's sessions, or show one.

    AGENT is an id or a slug. Without an ID, sessions are listed, most recently active first. With
    an ID, the last entries of that session are shown, at most --limit.
    """
    if (jsonl or provenance) and id is None:
        raise click.UsageError("--jsonl and --provenance need the ID of a session")
    if id is not None and (options["search"] or options["scope"]):
        raise click.UsageError("--search and --scope are for listing sessions")
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    filters = {name: options.pop(name) for name in ("search", "scope", "limit")}
    if id is None:
        rows = run(lambda: _list(agent, filters, options), as_json=as_json, expected=(CarrelError,))
        _print_list(rows, as_json=as_json)
    elif provenance is not None:
        number = provenance
        chain = run(
            lambda: _load_provenance(agent, id, number, options),
            as_json=as_json,
            expected=(CarrelError,),
        )
        print_json(chain.facts) if as_json else print_provenance(chain)
    elif jsonl:
        lines = run(lambda: _lines(agent, id, options), as_json=as_json, expected=(CarrelError,))
        for line in lines:
            click.echo(line)
    else:
        limit = filters["limit"]
        session = run(
            lambda: _show(agent, id, limit, options), as_json=as_json, expected=(CarrelError,)
        )
        print_json(session) if as_json else _print_session(session)


def _open_client(options: dict[str, Any]) -> AsyncClient:
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(options)
    if not settings.token:
        raise StoreUnavailable("no API token: set CARREL_TOKEN or pass --token")
    return AsyncClient(settings.url, settings.token)


async def _list(
    agent: str, filters: dict[str, Any], options: dict[str, Any]
) -> list[Mapping[str, Any]]:
    scope, limit = filters["scope"], filters["limit"]
    async with _open_client(options) as client:
        agent_sessions = client.agent(agent).sessions
        if filters["search"] is not None:
            matches = await agent_sessions.search(filters["search"], scope=scope, limit=limit)
        else:
            matches = await agent_sessions.list(scope=scope, limit=limit)
        return [session.facts for session in matches]


async def _lines(agent: str, id: str, options: dict[str, Any]) -> Sequence[str]:
    async with _open_client(options) as client:
        session = await client.agent(agent).sessions.get(id)
        return await session.lines()


async def _load_provenance(agent: str, id: str, number: int, options: dict[str, Any]) -> Provenance:
    async with _open_client(options) as client:
        session = await client.agent(agent).sessions.get(id)
        return await session.provenance(number)


async def _show(agent: str, id: str, limit: int, options: dict[str, Any]) -> dict[str, Any]:
    async with _open_client(options) as client:
        session = await client.agent(agent).sessions.get(id)
        entries = await session.recent(limit)
        facts = {name: fact for name, fact in session.facts.items() if name != "next"}
        return {**facts, "entries": [entry.facts for entry in entries]}


def _print_list(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    for row in rows:
        open_ = "" if row["endedAt"] else ", open"
        source = f", {row['sourcePlugin']}" if row["sourcePlugin"] else ""
        count = f"{row['entryCount']} entries"
        click.echo(f"{row['id']}  {row['lastAt'][:16]}  {count}, {row['scope']}{source}{open_}")
        for match in row.get("matches", ()):
            click.echo(
                f"  {match['number']:>5}  {_role(match['role'])}  {_shorten(match['preview'])}"
            )


def _print_session(session: Mapping[str, Any]) -> None:
    for entry in session["entries"]:
        when = entry["timestamp"][:19].replace("T", " ")
        click.echo(f"{entry['number']:>5}  {when}  {_role(entry['role'])}")
        facts = describe_result(structured_result(entry.get("item")))
        for line in (*entry["content"].splitlines(), *facts):
            click.echo(f"       {printable(line)}")


def _role(role: str) -> str:
    return click.style(role, fg=_COLOURS.get(role))


def _shorten(text: str) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _MAX_LINE_CHARS else flat[: _MAX_LINE_CHARS - 1] + "…"
