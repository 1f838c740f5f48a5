"""``carrel sessions``: what was said with an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import print_json, run, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient

_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}
_WIDEST = 100


@click.command()
@click.argument("agent")
@click.argument("id", required=False)
@server_options
@click.option("--jsonl", is_flag=True, help="Write the session's transcript as lines of JSON.")
@click.option("--search", metavar="WORDS", help="Only sessions in which these were said.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Only sessions of this scope.")
@click.option(
    "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many."
)
def sessions(agent: str, id: str | None, as_json: bool, jsonl: bool, **given: Any) -> None:
    """List an agent's sessions, or show one.

    AGENT is an id or a slug. Without an ID, sessions are listed, that in which something was said
    last first; with one, what was said in it is shown: its last entries, as many as --limit says.
    """
    if jsonl and id is None:
        raise click.UsageError("--jsonl needs the ID of a session")
    if id is not None and (given["search"] or given["scope"]):
        raise click.UsageError("--search and --scope are for listing sessions")
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    asked = {name: given.pop(name) for name in ("search", "scope", "limit")}
    if id is None:
        rows = run(lambda: _list(agent, asked, given), as_json=as_json, expects=(CarrelError,))
        _say_list(rows, as_json=as_json)
    elif jsonl:
        lines = run(lambda: _lines(agent, id, given), as_json=as_json, expects=(CarrelError,))
        for line in lines:
            click.echo(line)
    else:
        limit = asked["limit"]
        shown = run(lambda: _show(agent, id, limit, given), as_json=as_json, expects=(CarrelError,))
        print_json(shown) if as_json else _say_session(shown)


def _desk(given: dict[str, Any]) -> AsyncClient:
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(given)
    if not settings.token:
        raise StoreUnavailable("a token is needed: CARREL_TOKEN, or --token")
    return AsyncClient(settings.url, settings.token)


async def _list(
    agent: str, asked: dict[str, Any], given: dict[str, Any]
) -> list[Mapping[str, Any]]:
    scope, limit = asked["scope"], asked["limit"]
    async with _desk(given) as desk:
        known = desk.agent(agent).sessions
        if asked["search"] is not None:
            found = await known.search(asked["search"], scope=scope, limit=limit)
        else:
            found = await known.list(scope=scope, limit=limit)
        return [session.facts for session in found]


async def _lines(agent: str, id: str, given: dict[str, Any]) -> Sequence[str]:
    async with _desk(given) as desk:
        session = await desk.agent(agent).sessions.get(id)
        return await session.lines()


async def _show(agent: str, id: str, limit: int, given: dict[str, Any]) -> dict[str, Any]:
    async with _desk(given) as desk:
        session = await desk.agent(agent).sessions.get(id)
        after = max(0, session.facts["entryCount"] - limit)
        entries = list(await session.read(after=after, limit=limit))
        while (
            entries
            and len(entries) < limit
            and (more := await session.read(after=entries[-1].number, limit=limit - len(entries)))
        ):
            entries += more
        facts = {name: fact for name, fact in session.facts.items() if name != "next"}
        return {**facts, "entries": [entry.facts for entry in entries]}


def _say_list(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    for row in rows:
        open_ = "" if row["endedAt"] else ", open"
        came = f", {row['sourcePlugin']}" if row["sourcePlugin"] else ""
        count = f"{row['entryCount']} entries"
        click.echo(f"{row['id']}  {row['lastAt'][:16]}  {count}, {row['scope']}{came}{open_}")
        for match in row.get("matches", ()):
            click.echo(f"  {match['number']:>5}  {_role(match['role'])}  {_line(match['preview'])}")


def _say_session(session: Mapping[str, Any]) -> None:
    for entry in session["entries"]:
        when = entry["timestamp"][:19].replace("T", " ")
        click.echo(f"{entry['number']:>5}  {when}  {_role(entry['role'])}")
        for line in entry["content"].splitlines():
            click.echo(f"       {_plain(line)}")


def _role(role: str) -> str:
    return click.style(role, fg=_COLOURS.get(role))


def _line(text: str) -> str:
    flat = _plain(" ".join(text.split()))
    return flat if len(flat) <= _WIDEST else flat[: _WIDEST - 1] + "…"


def _plain(text: str) -> str:
    """Without what would make a terminal do something."""
    return "".join(one if one.isprintable() or one == "\t" else "\ufffd" for one in text)
