"""``carrel dream``: letting an agent take into MEMORY.md what has come up often."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.console import print_json, run, server_options

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_SHOWN = 20
"""Memories of which it is said why they were not promoted; --json tells of all."""


@click.command()
@click.argument("agent")
@server_options
@click.option("--dry-run", is_flag=True, help="Change nothing, only show what would change.")
def dream(agent: str, as_json: bool, dry_run: bool, **given: Any) -> None:
    """Let an agent dream now, and show what changes.

    AGENT is an id or a slug, and what changes is its MEMORY.md. What came up often enough is
    promoted; of what was not, the reason is told. Where its config asks for a review, what would
    be promoted is only proposed. Exit code 0: it dreamed; 1: it could not, and nothing changed.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    found = run(lambda: _dream(agent, dry_run, given), as_json=as_json, expects=(CarrelError,))
    if as_json:
        print_json({"ok": True, **found})
        return
    for line in found["diff"].splitlines():
        click.secho(line, fg=_COLOURS.get(line[:1]))
    for one in found["rejected"][:_SHOWN]:
        click.echo(f"{one['score']:.2f}  {one['message']}: {one['content']}", err=True)
    left = len(found["rejected"]) - _SHOWN
    if left > 0:
        click.echo(f"… and {left} more, which --json tells of", err=True)
    click.echo(_summary(found), err=True)


async def _dream(agent: str, dry_run: bool, given: dict[str, Any]) -> dict[str, Any]:
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(given)
    if not settings.token:
        raise StoreUnavailable("a token is needed: CARREL_TOKEN, or --token")
    async with AsyncClient(settings.url, settings.token) as desk:
        return dict((await desk.agent(agent).dreams.sweep(dry_run=dry_run)).facts)


def _summary(found: dict[str, Any]) -> str:
    promoted = found["promotedCount"]
    verb = "would be promoted" if found["dryRun"] else "promoted"
    if found["status"] == "proposed" and not found["dryRun"]:
        verb = f"proposed: review {found['id']}"
    return f"{found['candidates']} came up, {promoted} {verb}, {len(found['rejected'])} not"
