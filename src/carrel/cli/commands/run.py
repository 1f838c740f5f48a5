"""``carrel run``: runs, and the workspaces that were frozen for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Difference, File, FileRow, Prompt

Facts = Mapping[str, Any]

_STYLES: Final = {"running": "cyan", "completed": "green", "failed": "red", "cancelled": "yellow"}
_PAGE: Final = 500


@click.group()
def run() -> None:
    """Runs: each reads files as they were when it began.

    carrel replay starts one that reads what another did.
    """


@run.command()
@click.argument("agent", required=False)
@server_options
@click.option("--workflow", default="", help="What it is for; needed without an AGENT.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Who will listen.")
@click.option("--parent", metavar="RUN", help="Start it as a child of this run.")
@click.option("--share-snapshot", is_flag=True, help="See what the parent sees.")
def start(agent: str | None, as_json: bool, scope: str | None, **given: Any) -> None:
    """Start a run: the workspace is frozen for it now.

    AGENT is an id or a slug; without one it is the credential's own workspace. The id of the run is
    all that is said.
    """
    asked = {name: given.pop(name) for name in ("workflow", "parent", "share_snapshot")}
    if not (agent or asked["workflow"] or asked["parent"]):
        raise click.UsageError("a run needs an AGENT, a --workflow or a --parent")
    if asked["share_snapshot"] and not asked["parent"]:
        raise click.UsageError("--share-snapshot needs a --parent")

    async def begin(desk: AsyncClient) -> Facts:
        run = await desk.start_run(
            asked["workflow"],
            agent_id=agent,
            scope=scope,
            parent_run_id=asked["parent"],
            share_snapshot=asked["share_snapshot"],
        )
        return run.facts

    found = run_on_server(begin, given, as_json=as_json)
    print_json(found) if as_json else click.echo(found["runId"])


@run.command()
@server_options
@click.option("--agent", help="Only runs of this agent, by id or slug.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many.")
def ls(as_json: bool, agent: str | None, limit: int, **given: Any) -> None:
    """List runs, newest first."""

    async def look(desk: AsyncClient) -> list[Facts]:
        found: list[Facts] = []
        while len(found) < limit:
            before = str(found[-1]["runId"]) if found else ""
            count = min(_PAGE, limit - len(found))
            page = await desk.runs(agent_id=agent, before=before, limit=count)
            found += [one.facts for one in page]
            if len(page) < count:
                break
        return found

    found = run_on_server(look, given, as_json=as_json)
    if as_json:
        print_json({"runs": found})
        return
    heads = ("run", "status", "started", "scope", "workflow", "agent")
    formatting.table(heads, [_row(one) for one in found])


def _row(one: Facts) -> list[formatting.Cell]:
    status = str(one["status"])
    return [
        str(one["runId"]),
        (status, _STYLES.get(status, "")),
        formatting.when(one["startedAt"]),
        str(one["scope"]),
        str(one["workflowId"]),
        str(one["agentId"] or ""),
    ]


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def show(id: str, as_json: bool, **given: Any) -> None:
    """Show a run, and how many files it sees."""

    async def look(desk: AsyncClient) -> Facts:
        return (await desk.run(id)).facts

    found = run_on_server(look, given, as_json=as_json)
    if as_json:
        print_json(found)
        return
    told = {
        "run": found["runId"],
        "status": found["status"],
        "scope": found["scope"],
        "workflow": found["workflowId"],
        "agent": found["agentId"],
        "parent": found["parentRunId"],
        "replay of": found["replayOf"],
        "started": formatting.when(found["startedAt"]),
        "ended": formatting.when(found["endedAt"]),
        "files": len(found["workspace"]) if found["kept"] else "let go",
    }
    for name, fact in told.items():
        if fact not in (None, ""):
            click.echo(f"{name:<10} {formatting.plain(str(fact))}")


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def files(id: str, as_json: bool, **given: Any) -> None:
    """List the files that a run sees."""

    async def look(desk: AsyncClient) -> tuple[FileRow, ...]:
        return await (await desk.run(id)).workspace.list()

    found = run_on_server(look, given, as_json=as_json)
    if as_json:
        print_json({"runId": id, "files": [formatting.told(row) for row in found]})
        return
    rows = [(row.path, str(row.version), row.source, formatting.short(row.sha256)) for row in found]
    formatting.table(("path", "version", "source", "sha256"), rows, right=("version",))


@run.command()
@click.argument("id", metavar="RUN")
@click.argument("path")
@server_options
def cat(id: str, path: str, as_json: bool, **given: Any) -> None:
    """Show a file as a run sees it: the same bytes for ever."""

    async def look(desk: AsyncClient) -> File:
        return await (await desk.run(id)).workspace.get(path)

    found = run_on_server(look, given, as_json=as_json)
    print_json(formatting.told(found)) if as_json else formatting.content(found.content)


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def prompt(id: str, as_json: bool, **given: Any) -> None:
    """Show the exact system prompt of a run, whatever has changed since."""

    async def look(desk: AsyncClient) -> Prompt:
        return await (await desk.run(id)).prompt()

    found = run_on_server(look, given, as_json=as_json)
    print_json(dataclasses.asdict(found)) if as_json else formatting.content(found.text)


@run.command()
@click.argument("id", metavar="RUN")
@click.argument("path", required=False)
@server_options
def diff(id: str, path: str | None, as_json: bool, **given: Any) -> None:
    """Show what has changed in the workspace since a run began; with a PATH, how."""

    async def look(desk: AsyncClient) -> tuple[tuple[Difference, ...], str]:
        found = await desk.run(id)
        return ((), await found.diff_of(path)) if path else (await found.diff(), "")

    changes, text = run_on_server(look, given, as_json=as_json)
    if as_json:
        more = {"path": path, "diff": text} if path else {"changes": [_told(c) for c in changes]}
        print_json({"runId": id, **more})
    elif path:
        formatting.diff(text)
    else:
        rows = [(c.path, c.kind, _number(c.before), _number(c.after)) for c in changes]
        formatting.table(("path", "change", "then", "now"), rows, right=("then", "now"))


def _number(version: int | None) -> str:
    return "" if version is None else str(version)


def _told(one: Difference) -> dict[str, Any]:
    versions = {"beforeVersion": one.before, "afterVersion": one.after}
    return {"path": one.path, "change": one.kind, **versions}


@run.command()
@click.argument("id", metavar="RUN")
@server_options
@click.option(
    "--status",
    type=click.Choice(["completed", "failed", "cancelled"]),
    default="completed",
    show_default=True,
    help="How it ended.",
)
@click.option("--release", is_flag=True, help="Let go of its files too. There is no way back.")
def end(id: str, as_json: bool, status: str, release: bool, **given: Any) -> None:
    """End a run. One that has ended stays as it ended."""

    async def finish(desk: AsyncClient) -> Facts:
        found = await (await desk.run(id)).finish(status)
        return (await found.release()).facts if release else found.facts

    found = run_on_server(finish, given, as_json=as_json)
    print_json(found) if as_json else click.echo(f"{id}: {found['status']}")
