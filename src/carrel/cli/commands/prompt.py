"""`carrel prompt`: shows an agent's system prompt."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.connection import connect
from carrel.cli.console import print_json, run, server_options
from carrel.cli.names import AGENT

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from carrel_client import Prompt

_COLOURS: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
_STATE_STYLES: Final = {"kept": "green", "cut": "yellow", "left out": "bright_black"}


@click.command()
@click.argument("agent", type=AGENT)
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="Audience: one person, or several.",
)
@click.option("--text", is_flag=True, help="Print only the prompt's text.")
@server_options
def prompt(agent: str, scope: str, text: bool, as_json: bool, **options: Any) -> None:
    """Show the system prompt of an agent, file by file.

    AGENT is an id or a slug. Lists for each candidate file its layer, version and length, and
    whether it was kept, cut or left out, and why. Exit code 0: success; 1: there is no prompt, or
    it could not be loaded.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def fetch() -> Prompt:
        async with connect(options) as (client, _):
            return await client.agent(agent).prompt(scope)

    assembled = run(fetch, as_json=as_json, expected=(CarrelError,))
    if as_json:
        print_json(dataclasses.asdict(assembled))
    elif text:
        click.echo(assembled.text)
    else:
        _print_prompt(assembled)


def _print_prompt(assembled: Prompt) -> None:
    from rich.console import Console  # noqa: PLC0415 - so that --help stays quick

    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        console.print(_bar(assembled, console.width))
    console.print(_block_table(assembled, console.is_terminal))
    estimated = (
        " (an estimate)" if assembled.tokenizer == "estimate" else f" of {assembled.tokenizer}"
    )
    console.print(f"{assembled.chars:,} characters, {assembled.tokens:,} tokens{estimated}")


def _colours(assembled: Prompt) -> dict[str, str]:
    """Colours by path, for blocks that are part of the prompt."""
    included = [block.path for block in assembled.blocks if block.chars]
    return {path: _COLOURS[index % len(_COLOURS)] for index, path in enumerate(included)}


def _bar(assembled: Prompt, width: int) -> Text:
    """Draw each block in proportion to its share, at least 1 character wide."""
    from rich.text import Text  # noqa: PLC0415 - so that --help stays quick

    bar, colours = Text(), _colours(assembled)
    available = max(width - len(colours), 1)
    for block in assembled.blocks:
        if block.chars:
            share = 1 + available * block.chars // max(assembled.chars, 1)
            bar.append("█" * share, style=colours[block.path])
    bar.truncate(width)
    return bar


def _block_table(assembled: Prompt, coloured: bool) -> Table:
    from rich.table import Table  # noqa: PLC0415 - so that --help stays quick
    from rich.text import Text  # noqa: PLC0415 - as above

    table, colours = Table(box=None, pad_edge=False), _colours(assembled)
    for name in ("block", "source", "version", "chars", "tokens", "state"):
        right = name in {"version", "chars", "tokens"}
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "state")
    for block in assembled.blocks:
        mark = "■ " if block.chars else "  "
        label = Text(mark if coloured else "", style=colours.get(block.path, ""))
        label.append(block.path if block.name == "RECENT NOTES" else block.name, style="default")
        state = f"{block.kept}: {block.reason}" if block.reason else block.kept
        version = "" if block.version is None else str(block.version)
        table.add_row(
            *(label, Text(block.source or ""), version, f"{block.chars:,}", f"{block.tokens:,}"),
            Text(state, style=_STATE_STYLES.get(block.kept, "")),
        )
    return table
