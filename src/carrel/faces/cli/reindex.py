"""``carrel reindex``: making anew what is only made from the rest."""

from __future__ import annotations

from typing import Any

import click

from carrel.faces.cli.terminal import answer, run, store_options


@click.command()
@store_options
def reindex(as_json: bool, **given: Any) -> None:
    """Make the words anew that memories are found by.

    They are kept with every change, and made when a backup is restored; this is for a store in
    which something has gone wrong with them. Writers wait meanwhile.
    """
    words = run(lambda: _made(given), as_json=as_json)
    if as_json:
        answer({"ok": True, "words": words})
    else:
        click.echo(f"{words} words")


async def _made(given: dict[str, Any]) -> int:
    from carrel.wiring.commands import opened  # noqa: PLC0415 - so that --help stays quick

    async with opened(given) as store:
        return await store.upkeep.reindex()
