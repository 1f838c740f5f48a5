"""``carrel lint``: what is wrong with prompts, for people and for the checks of a repository."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.connection import connect
from carrel.cli.console import FAILED, print_json, run, server_options

if TYPE_CHECKING:
    from carrel_client import PromptFlaw

UNKNOWN: Final = 2
"""The exit code where it could not be found out."""


@click.command()
@click.argument("agents", metavar="AGENT...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Look at all agents of the tenant.")
@server_options
def lint(agents: tuple[str, ...], every: bool, as_json: bool, **given: Any) -> None:
    """Look for what is wrong with the prompts of agents.

    Files that are cut or left out for want of room, policy that does not fit, placeholders that
    stand for nothing, what looks like a secret, a time of day in what should stay the same from day
    to day, and extra files that are not there. Exit code 0: nothing is wrong; 1: something is; 2:
    it could not be found out.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    if every == bool(agents):
        raise click.UsageError("name some agents, or say --all")

    async def look() -> dict[str, tuple[PromptFlaw, ...]]:
        async with connect(given) as (desk, _):
            names = [row.slug for row in await desk.agents.list()] if every else agents
            return {name: await desk.agent(name).lint() for name in names}

    found = run(look, as_json=as_json, expects=(CarrelError,), failed=UNKNOWN)
    wrong = sum(map(len, found.values()))
    if as_json:
        print_json({"ok": not wrong, "agents": _told(found)})
    else:
        _say(found, wrong)
    if wrong:
        sys.exit(FAILED)


def _told(found: dict[str, tuple[PromptFlaw, ...]]) -> dict[str, Any]:
    return {name: [dataclasses.asdict(each) for each in flaws] for name, flaws in found.items()}


def _say(found: dict[str, tuple[PromptFlaw, ...]], wrong: int) -> None:
    for name, flaws in found.items():
        for each in flaws:
            fault = click.style(each.fault, fg="red")
            click.echo(f"{name}: {each.path}: {fault}: {each.text}")
    agents = f"{len(found)} agent{'s' * (len(found) != 1)}"
    click.echo(f"{agents}: {wrong} wrong" if wrong else f"{agents}: nothing is wrong")
