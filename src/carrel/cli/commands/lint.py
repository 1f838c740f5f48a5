"""`carrel lint`: checks agents' prompts, for people and for CI."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.connection import connect
from carrel.cli.console import EXIT_FAILED, print_json, run, server_options

if TYPE_CHECKING:
    from carrel_client import PromptFlaw

EXIT_UNKNOWN: Final = 2
"""Exit code if the check could not be run."""


@click.command()
@click.argument("agents", metavar="AGENT...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Check all agents of the tenant.")
@server_options
def lint(agents: tuple[str, ...], every: bool, as_json: bool, **options: Any) -> None:
    """Check the prompts of agents for problems.

    Finds files that are truncated or omitted because of the size limit, policy that does not fit,
    unknown placeholders, likely secrets, times of day in files that should be stable, and missing
    extra files. Exit code 0: no problems; 1: problems; 2: the check failed.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    if every == bool(agents):
        raise click.UsageError("pass agents, or --all")

    async def load_flaws() -> dict[str, tuple[PromptFlaw, ...]]:
        async with connect(options) as (client, _):
            names = [row.slug for row in await client.agents.list()] if every else agents
            return {name: await client.agent(name).lint() for name in names}

    flaws_by_agent = run(
        load_flaws, as_json=as_json, expected=(CarrelError,), exit_code=EXIT_UNKNOWN
    )
    flaw_count = sum(map(len, flaws_by_agent.values()))
    if as_json:
        print_json({"ok": not flaw_count, "agents": _flaws_to_json(flaws_by_agent)})
    else:
        _print_flaws(flaws_by_agent, flaw_count)
    if flaw_count:
        sys.exit(EXIT_FAILED)


def _flaws_to_json(flaws_by_agent: dict[str, tuple[PromptFlaw, ...]]) -> dict[str, Any]:
    return {
        name: [dataclasses.asdict(flaw) for flaw in flaws] for name, flaws in flaws_by_agent.items()
    }


def _print_flaws(flaws_by_agent: dict[str, tuple[PromptFlaw, ...]], flaw_count: int) -> None:
    for name, flaws in flaws_by_agent.items():
        for flaw in flaws:
            fault = click.style(flaw.fault, fg="red")
            click.echo(f"{name}: {flaw.path}: {fault}: {flaw.text}")
    agents = f"{len(flaws_by_agent)} agent{'s' * (len(flaws_by_agent) != 1)}"
    click.echo(
        f"{agents}: {flaw_count} problem{'s' * (flaw_count != 1)}"
        if flaw_count
        else f"{agents}: no problems"
    )
