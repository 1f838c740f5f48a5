"""`carrel sync`: synchronizes a directory with an agent's own files."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import EXIT_FAILED, print_json, progress_bars, run, server_options
from carrel.cli.names import AGENT

if TYPE_CHECKING:
    from carrel.cli.sync.sync_pass import PassResult

_ACTION_LABELS = {
    "up": "sent",
    "down": "received",
    "removed_here": "removed here",
    "removed_there": "removed there",
}


@click.command()
@click.argument("agent", type=AGENT)
@click.argument("dir", type=click.Path(file_okay=False, resolve_path=True, path_type=File))
@server_options
@click.option("--once", is_flag=True, help="Sync once and exit; do not watch.")
@click.option(
    "--settle",
    type=click.FloatRange(0, 60),
    default=0.3,
    show_default=True,
    help="Seconds a file must be unchanged before it is read.",
)
def sync(agent: str, dir: File, as_json: bool, once: bool, settle: float, **options: Any) -> None:
    """Synchronize a directory with an agent's own files, both ways.

    Changes and deletions in DIR go to AGENT (an id or a slug), and the agent's to DIR. If a file
    changed on both sides, both texts are kept: the server's is written next to yours as
    NAME.conflict-….md. To resolve it, edit your file and remove the copy. Pinned and managed files
    are downloaded only; a local edit of one is set aside. Inherited files are not synced; carrel
    pull downloads all files. Exit code 0: both are equal; 1: conflicts or errors.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    reporter = SyncReporter(dir, as_json=as_json, once=once)
    work = _sync_once if once else _watch
    run(
        lambda: work(agent, dir, settle, options, reporter),
        as_json=as_json,
        expected=(CarrelError,),
    )
    if not reporter.ok:
        sys.exit(EXIT_FAILED)


class SyncReporter:
    """Prints the results of passes. A problem that persists is printed once."""

    def __init__(self, dir: File, *, as_json: bool, once: bool) -> None:
        self._dir, self._as_json, self._sync_once = dir, as_json, once
        self._reported: set[str] = set()
        self._first = True
        self.ok = True

    def report_recovered(self, names: list[str]) -> None:
        for name in names:
            click.echo(f"recovered {name}: left over from an interrupted sync", err=True)

    def report(self, outcome: PassResult | str) -> None:
        if isinstance(outcome, str):
            click.echo(outcome, err=True)
            return
        lines = _problem_lines(outcome)
        new_lines = [line for line in lines if line not in self._reported]
        done = any(getattr(outcome, name) for name in _ACTION_LABELS)
        if not self._as_json:
            self._print_text(outcome, new_lines, done)
        elif self._sync_once or done or new_lines:
            self._print_json(outcome)
        if self._first and not self._sync_once:
            click.echo(f"{self._dir}: watching both sides; press Ctrl-C to stop", err=True)
        self.ok, self._first, self._reported = outcome.ok, False, set(lines)

    def _print_text(self, outcome: PassResult, new_lines: list[str], done: bool) -> None:
        for name, word in _ACTION_LABELS.items():
            for path in getattr(outcome, name):
                click.echo(f"{word} {path}")
        for line in new_lines:
            click.echo(line, err=True)
        if self._sync_once:
            click.echo(f"{self._dir}: {_state_label(outcome, done)}")

    def _print_json(self, outcome: PassResult) -> None:
        """Print one indented object; while watching, one object per line."""
        if self._sync_once:
            print_json(_result_to_json(self._dir, outcome))
            return
        import json  # noqa: PLC0415 - so that --help stays quick

        click.echo(json.dumps(_result_to_json(self._dir, outcome), ensure_ascii=False))


async def _sync_once(
    agent: str, dir: File, settle: float, options: dict[str, Any], reporter: SyncReporter
) -> None:
    from carrel.cli.connection import connect  # noqa: PLC0415 - so that --help stays quick
    from carrel.cli.sync.watch_loop import open_pair, sync_until_stable  # noqa: PLC0415 - as above

    async with (
        connect(options) as (client, server),
        open_pair(client, server, agent, dir, settle) as (pair, recovered),
    ):
        reporter.report_recovered(recovered)
        with progress_bars() as on_progress:
            outcome = await sync_until_stable(pair, settle, on_progress=on_progress)
        reporter.report(outcome)


async def _watch(
    agent: str, dir: File, settle: float, options: dict[str, Any], reporter: SyncReporter
) -> None:
    from carrel.cli.connection import connect  # noqa: PLC0415 - so that --help stays quick
    from carrel.cli.sync.watch_loop import open_pair, run_until_stopped, sync_continuously  # noqa: PLC0415 - as above

    async with (
        connect(options) as (client, server),
        open_pair(client, server, agent, dir, settle) as (pair, recovered),
    ):
        reporter.report_recovered(recovered)
        await run_until_stopped(sync_continuously(pair, client, settle, reporter.report))


def _state_label(outcome: PassResult, done: bool) -> str:
    if not outcome.ok:
        return "not in sync"
    return "in sync now" if done else "already in sync"


def _problem_lines(outcome: PassResult) -> list[str]:
    """Return one line for every conflict, refusal and other problem."""
    lines = [
        f"conflict {path}: changed on both sides; the server's text is in {copy}"
        for path, copy in outcome.conflicts.items()
    ]
    lines += [
        f"refused {path}: read-only; your text is in {copy}"
        for path, copy in outcome.set_aside.items()
    ]
    lines += [f"skipped {path}: {reason}" for path, reason in sorted(outcome.problems.items())]
    lines += [f"redacted {path}: the server removed secrets from it" for path in outcome.redacted]
    return lines


def _result_to_json(dir: File, outcome: PassResult) -> dict[str, Any]:
    return {
        "ok": outcome.ok,
        "directory": str(dir),
        "sent": outcome.up,
        "received": outcome.down,
        "removedHere": outcome.removed_here,
        "removedThere": outcome.removed_there,
        "redacted": outcome.redacted,
        "conflicts": [{"path": path, "copy": copy} for path, copy in outcome.conflicts.items()],
        "refused": [{"path": path, "copy": copy} for path, copy in outcome.set_aside.items()],
        "leftOut": [{"path": path, "problem": reason} for path, reason in outcome.problems.items()],
    }
