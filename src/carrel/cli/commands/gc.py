"""`carrel gc`: deletes unreferenced and expired data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from carrel.cli.console import print_json, run, store_options

_COUNT_LABELS = {
    "versions": "file versions beyond the limit",
    "contents": "unreferenced contents",
    "receipts": "expired idempotency records",
    "attempts": "attempts of old webhook deliveries",
    "deliveries": "old webhook deliveries",
    "events": "old events",
    "discarded": "large objects moved to the trash",
    "restored": "large objects restored from the trash",
    "objects": "large objects deleted",
    "sessions": "expired sessions",
    "approvals": "old approvals",
    "jobs": "old jobs",
    "erasures": "interrupted deletions finished",
    "agents": "deleted agents whose data was left",
}


@click.command()
@store_options
@click.option("--grace", type=click.IntRange(min=0), help="Minutes to keep unreferenced content.")
@click.option("--transcripts", type=click.IntRange(min=1), help="Days to keep sessions.")
@click.option("--approvals", type=click.IntRange(min=1), help="Days to keep approvals and jobs.")
@click.option("--events", type=click.IntRange(min=1), help="Days to keep events.")
def gc(
    as_json: bool,
    grace: int | None,
    events: int | None,
    transcripts: int | None,
    approvals: int | None,
    **options: Any,
) -> None:
    """Delete unreferenced and expired data.

    The store may be serving meanwhile; a server does this every hour. Large objects are deleted in
    two steps: first moved to a trash, then deleted after the grace period. The grace period must be
    longer than any write or backup takes.
    """
    options |= {"gc_grace_minutes": grace, "event_retention_days": events}
    options |= {"transcript_retention_days": transcripts, "approval_retention_days": approvals}
    counts = run(lambda: _collect(options), as_json=as_json)
    if as_json:
        print_json({"ok": True, **counts})
        return
    for kind, count in counts.items():
        if count:
            click.echo(f"{count} {_COUNT_LABELS.get(kind, kind)}")
    if not any(counts.values()):
        click.echo("nothing to delete")


async def _collect(options: dict[str, Any]) -> Mapping[str, int]:
    from carrel.actions.maintenance.integrity import collect  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.expiry import expire_approvals_and_jobs, finish_deletions  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above
    from carrel.wiring.transcripts import expire_sessions  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        finished = await finish_deletions(store)
        counts = await collect(
            store.maintenance,
            store.objects,
            now=store.ports.clock.now(),
            grace=store.settings.gc_grace_minutes * 60_000,
            event_retention_ms=store.settings.event_retention_days * 86_400_000,
        )
        sessions = await expire_sessions(store)
        return {
            **counts,
            "sessions": sessions,
            **finished,
            **await expire_approvals_and_jobs(store),
        }
