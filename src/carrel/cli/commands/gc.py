"""``carrel gc``: removing what nothing refers to, and what has run out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from carrel.cli.console import print_json, run, store_options

_NAMES = {
    "versions": "versions of files past their limit",
    "contents": "contents that nothing refers to",
    "receipts": "receipts that have run out",
    "attempts": "attempts of old deliveries",
    "deliveries": "old deliveries",
    "events": "old events",
    "discarded": "large objects put into the trash",
    "restored": "large objects brought back from the trash",
    "objects": "large objects deleted",
    "sessions": "sessions that have had their time",
    "approvals": "approvals that were over long ago",
    "jobs": "jobs that had ended long ago",
}


@click.command()
@store_options
@click.option("--grace", type=click.IntRange(min=0), help="Minutes for which bytes stay.")
@click.option("--transcripts", type=click.IntRange(min=1), help="Days for which sessions stay.")
@click.option("--hands", type=click.IntRange(min=1), help="Days for which approvals and jobs stay.")
@click.option("--events", type=click.IntRange(min=1), help="Days for which events stay.")
def gc(
    as_json: bool,
    grace: int | None,
    events: int | None,
    transcripts: int | None,
    hands: int | None,
    **given: Any,
) -> None:
    """Remove what nothing needs any more.

    The store may be serving meanwhile; a server does this by itself every hour. Large objects
    go in two steps: into a trash first, and for good once they have lain there for the grace
    period. Make that no shorter than any write or backup takes.
    """
    given |= {"gc_grace_minutes": grace, "events_days": events}
    given |= {"transcripts_days": transcripts, "hands_days": hands}
    counts = run(lambda: _collect(given), as_json=as_json)
    if as_json:
        print_json({"ok": True, **counts})
        return
    for what, count in counts.items():
        if count:
            click.echo(f"{count} {_NAMES.get(what, what)}")
    if not any(counts.values()):
        click.echo("there was nothing to remove")


async def _collect(given: dict[str, Any]) -> Mapping[str, int]:
    from carrel.actions.maintenance.integrity import collect  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above
    from carrel.wiring.retention import expire_approvals_and_jobs  # noqa: PLC0415 - as above
    from carrel.wiring.transcripts import expire_sessions  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        counts = await collect(
            store.maintenance,
            store.objects,
            now=store.ports.clock.now(),
            grace=store.settings.gc_grace_minutes * 60_000,
            event_retention_ms=store.settings.events_days * 86_400_000,
        )
        sessions = await expire_sessions(store)
        return {**counts, "sessions": sessions, **await expire_approvals_and_jobs(store)}
