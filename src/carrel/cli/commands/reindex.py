"""``carrel reindex``: making the full text again of what was said and remembered."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.console import print_json, progress_bars, run, store_options


@click.command()
@store_options
def reindex(as_json: bool, **given: Any) -> None:
    """Make the full-text index again.

    It has what was said and what is remembered, and is kept up to date by itself; this is for one
    that was lost or damaged. The store may be serving meanwhile: what has not been reached yet is
    not found by a search until it is. If it is interrupted, do it again.
    """
    counts = run(lambda: _reindex(given), as_json=as_json)
    if as_json:
        print_json({"ok": True, **counts})
        return
    click.echo(f"{counts['entries']} entries and {counts['words']} words can be found")


async def _reindex(given: dict[str, Any]) -> dict[str, int]:
    """How much there is of each thing that has words."""
    from carrel.actions.sessions import sessions  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        with progress_bars() as watch:
            entries = await sessions.reindex(store.ports, watch)
            return {"entries": entries, "words": await store.maintenance.reindex()}
