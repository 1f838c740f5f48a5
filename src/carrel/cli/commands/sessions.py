"""`carrel sessions` prints transcripts, `carrel entries` appends and removes their entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, run, server_options
from carrel.cli.formatting import printable
from carrel.cli.names import AGENT
from carrel.cli.provenance_report import print_provenance
from carrel.cli.session_entries import parse_entries, print_entry, styled_role

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Entry, Provenance
    from carrel_client.drivers import AsyncDriver
    from carrel_client.sessions import Session

_MAX_LINE_CHARS = 100


@click.command()
@click.argument("agent", type=AGENT)
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
            role, preview = styled_role(match["role"]), _shorten(match["preview"])
            click.echo(f"  {match['number']:>5}  {role}  {preview}")


def _print_session(session: Mapping[str, Any]) -> None:
    for entry in session["entries"]:
        print_entry(entry)


def _shorten(text: str) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _MAX_LINE_CHARS else flat[: _MAX_LINE_CHARS - 1] + "…"


@click.group()
def entries() -> None:
    """Append and remove entries of a session.

    AGENT is an id or a slug, SESSION the id of one of its sessions. carrel sessions shows them.
    """


@entries.command()
@click.argument("agent", type=AGENT)
@click.argument("session")
@click.argument("file", type=click.File("r"), default="-")
@server_options
def append(agent: str, session: str, file: TextIO, as_json: bool, **options: Any) -> None:
    """Append the entries of a JSON list, all or none.

    FILE is read from stdin if it is - or omitted. An entry has a role and a content, an item (any
    JSON) or both, and may have messageId, senderId, sourcePlugin and runId.
    """
    new_entries = parse_entries(file)

    async def append_all(client: AsyncClient) -> tuple[Entry, ...]:
        talk = await client.agent(agent).sessions.get(session)
        return await talk.append_all(new_entries)

    stored = run_on_server(append_all, options, as_json=as_json)
    if as_json:
        print_json({"items": [entry.facts for entry in stored]})
        return
    first, last = stored[0].number, stored[-1].number
    click.echo(
        f"{len(stored)} entries appended: {first} to {last}"
        if len(stored) > 1
        else f"1 entry appended: {first}"
    )


@entries.command()
@click.argument("agent", type=AGENT)
@click.argument("session")
@server_options
def pop(agent: str, session: str, as_json: bool, **options: Any) -> None:
    """Remove the last entry of a session and print it."""

    async def remove_last(client: AsyncClient) -> Entry | None:
        return await (await client.agent(agent).sessions.get(session)).pop()

    entry = run_on_server(remove_last, options, as_json=as_json)
    if as_json:
        print_json({"entry": entry and entry.facts})
    elif entry is None:
        click.echo("the session has no entries")
    else:
        print_entry(entry.facts)


@entries.command()
@click.argument("agent", type=AGENT)
@click.argument("session")
@click.confirmation_option(prompt="Remove all entries of this session?")
@server_options
def clear(agent: str, session: str, as_json: bool, **options: Any) -> None:
    """Remove all entries of a session."""

    async def remove_all(client: AsyncClient) -> Session[AsyncDriver]:
        return await (await client.agent(agent).sessions.get(session)).clear()

    cleared = run_on_server(remove_all, options, as_json=as_json)
    if as_json:
        print_json(cleared.facts)
        return
    click.echo(f"{printable(session)}: {cleared.entry_count} entries")
