"""`carrel purge`: removes one text from everything that a tenant stores."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, progress_bars, server_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carrel_client import AsyncClient

_COUNT_LABELS = {
    "versions": "file versions",
    "paths": "file paths",
    "records": "records",
    "calls": "cancelled tool calls",
    "contents": "unreferenced contents",
    "version": "authors and reasons of versions",
    "run": "runs",
    "event": "events",
    "audit": "audit entries",
    "delivery": "webhook deliveries",
    "attempt": "delivery attempts",
    "session": "sessions",
    "session_entry": "session entries",
    "recall": "recalls",
    "idempotency_key": "idempotency records",
}


@click.command()
@server_options
@click.option("--text", help="The text. It stays in the history of your shell.")
@click.option(
    "--file", type=click.File("r", encoding="utf-8"), help="File with the text; - is stdin."
)
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(
    as_json: bool,
    text: str | None,
    file: IO[str] | None,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Remove a text from everything that the tenant stores.

    It is replaced by [REDACTED:purged] in every version of every file, in sessions, memories,
    items, approvals, runs, logs and indexes; git repositories are built again. Version numbers
    stay. This cannot be undone. If interrupted, run it again. Only owners may. Backups, clones and
    exports that were made before are not changed.

    Without --text and --file the text is asked for and not shown.
    """
    secret = _read_text(text, file)
    if not dry_run and not yes:
        click.confirm("Remove this text for ever?", abort=True, err=True)

    async def work(client: AsyncClient) -> Mapping[str, int]:
        with progress_bars() as on_progress:
            return await client.purge(secret, dry_run=dry_run, on_progress=on_progress)

    counts = run_on_server(work, options, as_json=as_json)
    if as_json:
        print_json({"ok": True, "counts": dict(counts)})
        return
    for kind, count in counts.items():
        click.echo(f"{count} {_COUNT_LABELS.get(kind, kind)}")
    if not counts:
        click.echo("not found")


def _read_text(text: str | None, file: IO[str] | None) -> str:
    """The text of the options; a line break at the end of a file does not count."""
    if text is not None and file is not None:
        raise click.UsageError("--text and --file exclude each other")
    if file is not None:
        return file.read().removesuffix("\n").removesuffix("\r")
    if text is not None:
        return text
    secret: str = click.prompt("Text", hide_input=True, err=True)
    return secret
