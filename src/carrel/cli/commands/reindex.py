"""`carrel reindex`: rebuilds the full-text index and the counts of the fleet."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.console import print_json, progress_bars, run, store_options


@click.command()
@store_options
def reindex(as_json: bool, **options: Any) -> None:
    """Rebuild the full-text index and the counts of agents.

    Both are maintained automatically; use this if they were lost or damaged. The store may be
    serving meanwhile: entries are not searchable until they are indexed again. If interrupted, run
    it again.
    """
    counts = run(lambda: _reindex(options), as_json=as_json)
    if as_json:
        print_json({"ok": True, **counts})
        return
    click.echo(f"{counts['entries']} entries and {counts['words']} words indexed")


async def _reindex(options: dict[str, Any]) -> dict[str, int]:
    """Rebuild the index and return counts by kind."""
    from carrel.actions.sessions import transcripts  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        with progress_bars() as on_progress:
            entries = await transcripts.reindex(store.ports, on_progress)
            words, tallies = await store.maintenance.reindex(), await store.ports.tallies.rebuild()
            return {"entries": entries, "words": words, "tallies": tallies}
