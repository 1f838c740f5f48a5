"""`carrel overview` and `carrel inbox`: the state of all agents, and what waits for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.formatting import Cell, print_table, printable

Facts = Mapping[str, Any]


@click.command()
@server_options
@click.option(
    "--days",
    type=click.IntRange(1, 90),
    default=30,
    show_default=True,
    help="Days up to today, in UTC.",
)
@click.option("--mine", is_flag=True, help="Only agents paired with you or owned by you.")
def overview(as_json: bool, days: int, mine: bool, **options: Any) -> None:
    """Show what waits, runs, drift and prompt sizes."""
    facts = run_on_server(
        lambda client: client.overview(days=days, mine=mine), options, as_json=as_json
    ).facts
    if as_json:
        print_json(facts)
        return
    waiting = facts["waiting"]
    failed = _count(waiting["failedRuns"], "run")
    click.echo(_count(facts["agents"], "agent"))
    click.echo(f"waiting: {_waiting_text(waiting)}; {failed} failed in 24 hours")
    click.echo(f"runs in {_count(days, 'day')}: {_runs_text(facts['runsByDay'])}")
    last = facts["memories"][-1]["total"]
    promoted = sum(day["promoted"] for day in facts["memories"])
    click.echo(f"memories: {last:,}, {promoted:,} promoted in {_count(days, 'day')}")
    if facts["drift"]:
        print_table(
            ["PINNED FILE", "UP TO DATE", "BEHIND", "NEW", "OVERRIDDEN"], _drift_rows(facts)
        )
    if facts["overrides"]:
        rows = [[printable(row["path"]), f"{row['agents']:,}"] for row in facts["overrides"]]
        print_table(["OVERRIDDEN FILE", "AGENTS"], rows)
    if templates := facts["prompts"]["byTemplate"]:
        print_table(
            ["TEMPLATE", "RUNS", "TOKENS", "STABLE"], [_prompt_row(row) for row in templates]
        )


@click.command()
@server_options
@click.option("--mine", is_flag=True, help="Only agents paired with you or owned by you.")
def inbox(as_json: bool, mine: bool, **options: Any) -> None:
    """List what waits: updates to review, approvals and dreams."""
    facts = run_on_server(lambda client: client.inbox(mine=mine), options, as_json=as_json).facts
    if as_json:
        print_json(facts)
        return
    click.echo(_waiting_text(facts["counts"]))
    rows = [
        [
            printable(group["path"]),
            printable(group["templateName"] or "Defaults"),
            f"{group['count']:,}",
            f"{group['overridden']:,}",
        ]
        for group in facts["groups"]
    ]
    if rows:
        print_table(["FILE", "OFFERED BY", "AGENTS", "OVERRIDDEN"], rows)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _waiting_text(counts: Mapping[str, int]) -> str:
    nouns = (("pins", "update"), ("approvals", "approval"), ("dreams", "dream"))
    return ", ".join(_count(counts[name], noun) for name, noun in nouns)


def _runs_text(days: Sequence[Mapping[str, Any]]) -> str:
    statuses = [name for name in days[0] if name != "at"]
    totals = {name: sum(day[name] for day in days) for name in statuses}
    parts = ", ".join(f"{count:,} {name}" for name, count in totals.items() if count)
    return parts or "none"


def _drift_rows(facts: Facts) -> list[list[Cell]]:
    return [
        [
            printable(row["path"]),
            f"{row['upToDate']:,}",
            f"{row['older'] + sum(part['agents'] for part in row['behind']):,}",
            f"{row['notReviewed']:,}",
            f"{row['overridden']:,}",
        ]
        for row in facts["drift"]
    ]


def _prompt_row(row: Mapping[str, Any]) -> list[Cell]:
    name = printable(row["templateName"] or "No template")
    return [name, f"{row['runs']:,}", f"{row['tokens']:,}", f"{row['stableTokens']:,}"]
