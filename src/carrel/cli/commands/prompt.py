"""``carrel prompt``: what an agent is told before anybody speaks to it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.connection import connect
from carrel.cli.console import print_json, run, server_options

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from carrel_client import Prompt

_COLOURS: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
_STATES: Final = {"kept": "green", "cut": "yellow", "left out": "bright_black"}


@click.command()
@click.argument("agent")
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="For one person, or where several listen.",
)
@click.option("--text", is_flag=True, help="Say the prompt itself, and nothing else.")
@server_options
def prompt(agent: str, scope: str, text: bool, as_json: bool, **given: Any) -> None:
    """Show the system prompt of an agent, file by file.

    AGENT is an id or a slug. For each file that could be in the prompt it says from which layer and
    version it comes, how long it is, and whether it was kept, cut or left out, and why. Exit code
    0: there is a prompt; 1: there is none, or it could not be had.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def ask() -> Prompt:
        async with connect(given) as (desk, _):
            return await desk.agent(agent).prompt(scope)

    found = run(ask, as_json=as_json, expects=(CarrelError,))
    if as_json:
        print_json(dataclasses.asdict(found))
    elif text:
        click.echo(found.text)
    else:
        _show(found)


def _show(found: Prompt) -> None:
    from rich.console import Console  # noqa: PLC0415 - so that --help stays quick

    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        console.print(_bar(found, console.width))
    console.print(_table(found, console.is_terminal))
    estimated = " (an estimate)" if found.tokenizer == "estimate" else f" of {found.tokenizer}"
    console.print(f"{found.chars:,} characters, {found.tokens:,} tokens{estimated}")


def _colours(found: Prompt) -> dict[str, str]:
    """Of the blocks that take part, by path."""
    taking = [block.path for block in found.blocks if block.chars]
    return {path: _COLOURS[at % len(_COLOURS)] for at, path in enumerate(taking)}


def _bar(found: Prompt, width: int) -> Text:
    """Each block as wide as its share of the prompt, and at least to be seen."""
    from rich.text import Text  # noqa: PLC0415 - so that --help stays quick

    bar, colours = Text(), _colours(found)
    room = max(width - len(colours), 1)
    for block in found.blocks:
        if block.chars:
            share = 1 + room * block.chars // max(found.chars, 1)
            bar.append("█" * share, style=colours[block.path])
    bar.truncate(width)
    return bar


def _table(found: Prompt, coloured: bool) -> Table:
    from rich.table import Table  # noqa: PLC0415 - so that --help stays quick
    from rich.text import Text  # noqa: PLC0415 - as above

    table, colours = Table(box=None, pad_edge=False), _colours(found)
    for name in ("block", "source", "version", "chars", "tokens", "state"):
        right = name in {"version", "chars", "tokens"}
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "state")
    for block in found.blocks:
        mark = "■ " if block.chars else "  "
        shown = Text(mark if coloured else "", style=colours.get(block.path, ""))
        shown.append(block.path if block.name == "RECENT NOTES" else block.name, style="default")
        state = f"{block.kept}: {block.reason}" if block.reason else block.kept
        version = "" if block.version is None else str(block.version)
        table.add_row(
            *(shown, Text(block.source or ""), version, f"{block.chars:,}", f"{block.tokens:,}"),
            Text(state, style=_STATES.get(block.kept, "")),
        )
    return table
