"""`carrel run`: manages runs and shows their frozen workspaces."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, Instant, print_json, server_options
from carrel.cli.provenance_report import print_provenance, time_line_row
from carrel.cli.session_entries import parse_entries

if TYPE_CHECKING:
    from carrel_client import (
        AsyncClient,
        Difference,
        File,
        FileRow,
        Heartbeat,
        Prompt,
        Provenance,
        TimeLineItem,
    )

Facts = Mapping[str, Any]

_STYLES: Final = {
    **{"running": "cyan", "completed": "green", "failed": "red", "cancelled": "yellow"},
    "abandoned": "yellow",
}
_PAGE: Final = 500
_START_OPTIONS: Final = (
    *("workflow_id", "scope", "parent_run_id", "share_snapshot", "session_id"),
    *("include", "dialect", "if_none_match"),
)


@click.group()
def run() -> None:
    """Manage runs: each reads files as they were when it started.

    carrel replay starts a run on the files of another run.
    """


@run.command()
@click.argument("agent", required=False)
@server_options
@click.option(
    "--workflow", "workflow_id", default="", help="Workflow id; required without an AGENT."
)
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Audience of the run.")
@click.option("--parent", "parent_run_id", metavar="RUN", help="Start it as a child of this run.")
@click.option(
    "--session", "session_id", metavar="ID", help="Session of the agent that it answers in."
)
@click.option("--share-snapshot", is_flag=True, help="Share the parent's snapshot.")
@click.option(
    "--include",
    type=click.Choice(["files", "prompt", "tools"]),
    multiple=True,
    help="Part to return with the run; may be repeated; needs --json.",
)
@click.option(
    "--dialect",
    type=click.Choice(["mcp", "openai", "anthropic"]),
    help="Format of the included tools.",
)
@click.option("--if-none-match", metavar="ETAG", help="Omit parts with this ETag.")
def start(agent: str | None, as_json: bool, **options: Any) -> None:
    """Start a run and freeze its workspace.

    AGENT is an id or a slug; without one, the token's own workspace is used. Prints the id of the
    run, or with --json what a runtime needs to start.
    """
    request = {name: options.pop(name) for name in _START_OPTIONS}
    if not (agent or request["workflow_id"] or request["parent_run_id"]):
        raise click.UsageError("a run needs an AGENT, a --workflow or a --parent")
    if request["share_snapshot"] and not request["parent_run_id"]:
        raise click.UsageError("--share-snapshot needs a --parent")
    if request["include"] and not as_json:
        raise click.UsageError("--include needs --json")
    if (request["dialect"] or request["if_none_match"]) and not request["include"]:
        raise click.UsageError("--dialect and --if-none-match need an --include")

    async def begin(client: AsyncClient) -> Facts:
        return (await client.start_run(agent_id=agent, **request)).facts

    facts = run_on_server(begin, options, as_json=as_json)
    print_json(facts) if as_json else click.echo(facts["runId"])


@run.command()
@server_options
@click.option("--agent", help="Only runs of this agent, by id or slug.")
@click.option("--session", metavar="ID", help="Only runs of this session of the agent.")
@click.option("--status", type=click.Choice(list(_STYLES)), help="Only runs with this status.")
@click.option("--from", "start", type=Instant(), help="Earliest start (UTC).")
@click.option("--to", "end", type=Instant(), help="Latest start (UTC), exclusive.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of runs."
)
def ls(as_json: bool, limit: int, **options: Any) -> None:
    """List runs, newest first."""
    filters = {name: options.pop(name) for name in ("status", "start", "end")}
    filters |= {"agent_id": options.pop("agent"), "session_id": options.pop("session")}
    if filters["session_id"] is not None and filters["agent_id"] is None:
        raise click.UsageError("--session needs an --agent")

    async def load(client: AsyncClient) -> list[Facts]:
        loaded: list[Facts] = []
        while len(loaded) < limit:
            before = str(loaded[-1]["runId"]) if loaded else ""
            count = min(_PAGE, limit - len(loaded))
            page = await client.runs(before=before, limit=count, **filters)
            loaded += [item.facts for item in page]
            if len(page) < count:
                break
        return loaded

    runs = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json({"runs": runs})
        return
    headers = ("run", "status", "started", "scope", "workflow", "agent")
    formatting.print_table(headers, [_run_row(facts) for facts in runs])


def _run_row(facts: Facts) -> list[formatting.Cell]:
    status = str(facts["status"])
    return [
        str(facts["runId"]),
        (status, _STYLES.get(status, "")),
        formatting.format_time(facts["startedAt"]),
        str(facts["scope"]),
        str(facts["workflowId"]),
        str(facts["agentId"] or ""),
    ]


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def show(id: str, as_json: bool, **options: Any) -> None:
    """Show a run, and how many files it has."""

    async def load(client: AsyncClient) -> Facts:
        return (await client.run(id)).facts

    facts = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json(facts)
        return
    fields = {
        "run": facts["runId"],
        "status": facts["status"],
        "scope": facts["scope"],
        "workflow": facts["workflowId"],
        "agent": facts["agentId"],
        "session": facts["sessionId"],
        "parent": facts["parentRunId"],
        "replay of": facts["replayOf"],
        "started": formatting.format_time(facts["startedAt"]),
        "ended": formatting.format_time(facts["endedAt"]),
        "abandoned": formatting.format_time(facts["abandonedAt"]),
        "reason": facts["reason"],
        "files": len(facts["workspace"]) if facts["kept"] else "released",
    }
    for name, fact in fields.items():
        if fact not in (None, ""):
            click.echo(f"{name:<10} {formatting.printable(str(fact))}")


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def files(id: str, as_json: bool, **options: Any) -> None:
    """List the files of a run."""

    async def load(client: AsyncClient) -> tuple[FileRow, ...]:
        return await (await client.run(id)).workspace.list()

    workspace_files = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json(
            {"runId": id, "files": [formatting.file_to_json(row) for row in workspace_files]}
        )
        return
    rows = [
        (row.path, str(row.version), row.source, formatting.short_digest(row.sha256))
        for row in workspace_files
    ]
    formatting.print_table(
        ("path", "version", "source", "sha256"), rows, right_aligned=("version",)
    )


@run.command()
@click.argument("id", metavar="RUN")
@click.argument("path")
@server_options
def cat(id: str, path: str, as_json: bool, **options: Any) -> None:
    """Show a file from a run's snapshot."""

    async def load(client: AsyncClient) -> File:
        return await (await client.run(id)).workspace.get(path)

    response = run_on_server(load, options, as_json=as_json)
    print_json(formatting.file_to_json(response)) if as_json else formatting.print_content(
        response.content
    )


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def prompt(id: str, as_json: bool, **options: Any) -> None:
    """Show the exact system prompt of a run."""

    async def load(client: AsyncClient) -> Prompt:
        return await (await client.run(id)).prompt()

    assembled = run_on_server(load, options, as_json=as_json)
    print_json(dataclasses.asdict(assembled)) if as_json else formatting.print_content(
        assembled.text
    )


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def provenance(id: str, as_json: bool, **options: Any) -> None:
    """Show what a run wrote, and who wrote and reviewed the files it read."""

    async def load(client: AsyncClient) -> Provenance:
        return await (await client.run(id)).provenance()

    chain = run_on_server(load, options, as_json=as_json)
    print_json(chain.facts) if as_json else print_provenance(chain)


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def timeline(id: str, as_json: bool, **options: Any) -> None:
    """Show what happened in a run: entries, tool calls, writes and approvals."""

    async def load(client: AsyncClient) -> list[TimeLineItem]:
        frozen_run = await client.run(id)
        items: list[TimeLineItem] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await frozen_run.time_line(cursor=cursor, limit=200)
            items += page.items
            cursor = page.next
        return items

    items = run_on_server(load, options, as_json=as_json)
    if as_json:
        print_json({"runId": id, "items": [dict(item.facts) for item in items]})
    else:
        formatting.print_table(("time", "what", ""), [time_line_row(item) for item in items])


@run.command()
@click.argument("id", metavar="RUN")
@click.argument("path", required=False)
@server_options
def diff(id: str, path: str | None, as_json: bool, **options: Any) -> None:
    """Show changes in the workspace since a run started; with a PATH, its diff."""

    async def load(client: AsyncClient) -> tuple[tuple[Difference, ...], str]:
        frozen_run = await client.run(id)
        return ((), await frozen_run.diff_of(path)) if path else (await frozen_run.diff(), "")

    changes, text = run_on_server(load, options, as_json=as_json)
    if as_json:
        result = (
            {"path": path, "diff": text}
            if path
            else {"changes": [_difference_to_json(c) for c in changes]}
        )
        print_json({"runId": id, **result})
    elif path:
        formatting.print_diff(text)
    else:
        rows = [(c.path, c.kind, _number(c.before), _number(c.after)) for c in changes]
        formatting.print_table(
            ("path", "change", "then", "now"), rows, right_aligned=("then", "now")
        )


def _number(version: int | None) -> str:
    return "" if version is None else str(version)


def _difference_to_json(difference: Difference) -> dict[str, Any]:
    versions = {"beforeVersion": difference.before, "afterVersion": difference.after}
    return {"path": difference.path, "change": difference.kind, **versions}


@run.command()
@click.argument("id", metavar="RUN")
@server_options
def heartbeat(id: str, as_json: bool, **options: Any) -> None:
    """Report that a run still runs. Without reports it becomes abandoned.

    Exit code 1: it does not run any more.
    """

    async def send(client: AsyncClient) -> Heartbeat:
        return await (await client.run(id)).heartbeat()

    beat = run_on_server(send, options, as_json=as_json)
    lease_end = beat.lease_ends_at.isoformat() if beat.lease_ends_at else None
    if as_json:
        print_json({"runId": id, "status": beat.status, "leaseEndsAt": lease_end})
    else:
        lease = f" until {lease_end}" if lease_end else ""
        click.echo(f"{id}: {beat.status}{lease}")
    if beat.status != "running":
        sys.exit(EXIT_FAILED)


@run.command()
@click.argument("id", metavar="RUN")
@server_options
@click.option(
    "--status",
    type=click.Choice(["completed", "failed", "cancelled"]),
    default="completed",
    show_default=True,
    help="Final status.",
)
@click.option("--reason", metavar="TEXT", help="Why it ended, such as an error.")
@click.option("--release", is_flag=True, help="Also release its snapshot. This cannot be undone.")
@click.option(
    "--entries",
    type=click.File("r"),
    help="JSON list of entries to append to its session; - is stdin.",
)
def end(
    id: str,
    as_json: bool,
    status: str,
    reason: str | None,
    release: bool,
    entries: TextIO | None,
    **options: Any,
) -> None:
    """End a run. The status of an ended run does not change."""
    last_entries = parse_entries(entries) if entries else []

    async def finish(client: AsyncClient) -> Facts:
        ended_run = await (await client.run(id)).finish(status, entries=last_entries, reason=reason)
        return (await ended_run.release()).facts if release else ended_run.facts

    facts = run_on_server(finish, options, as_json=as_json)
    print_json(facts) if as_json else click.echo(f"{id}: {facts['status']}")
