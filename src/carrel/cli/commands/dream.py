"""`carrel dream`: consolidates an agent's memories into MEMORY.md."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.console import print_json, run, server_options
from carrel.cli.names import AGENT

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_MAX_REJECTED = 20
"""Rejected memories that are listed with their reasons; --json lists all."""


@click.command()
@click.argument("agent", type=AGENT)
@server_options
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--force", is_flag=True, help="Dream again within the agent's interval.")
def dream(agent: str, as_json: bool, dry_run: bool, force: bool, **options: Any) -> None:
    """Consolidate an agent's memories now, and show the changes.

    AGENT is an id or a slug. Memories recalled often enough are promoted to MEMORY.md; for the
    others the reason is printed. If the agent's config requires a review, promotions are only
    proposed. An agent with scheduled dreams dreams once per interval. Exit code 0: success; 1:
    failed, and nothing changed.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    flags = {"dry_run": dry_run, "force": force}
    report = run(lambda: _sweep(agent, flags, options), as_json=as_json, expected=(CarrelError,))
    if as_json:
        print_json({"ok": True, **report})
        return
    for line in report["diff"].splitlines():
        click.secho(line, fg=_COLOURS.get(line[:1]))
    for rejection in report["rejected"][:_MAX_REJECTED]:
        click.echo(
            f"{rejection['score']:.2f}  {rejection['message']}: {rejection['content']}", err=True
        )
    remaining = len(report["rejected"]) - _MAX_REJECTED
    if remaining > 0:
        click.echo(f"… and {remaining} more; --json lists all", err=True)
    click.echo(_summary(report), err=True)


async def _sweep(agent: str, flags: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(options)
    if not settings.token:
        raise StoreUnavailable("no API token: set CARREL_TOKEN or pass --token")
    async with AsyncClient(settings.url, settings.token) as client:
        return dict((await client.agent(agent).dreams.sweep(**flags)).facts)


def _summary(report: dict[str, Any]) -> str:
    promoted = report["promotedCount"]
    verb = "would be promoted" if report["dryRun"] else "promoted"
    if report["status"] == "proposed" and not report["dryRun"]:
        verb = f"proposed: review {report['id']}"
    return (
        f"{report['candidates']} candidates, {promoted} {verb}, {len(report['rejected'])} rejected"
    )
