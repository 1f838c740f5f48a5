"""``carrel sync``: a directory and an agent's own files, kept the same."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, print_json, progress_bars, run, server_options

if TYPE_CHECKING:
    from carrel.cli.sync.sync_pass import PassResult

_SAYS = {
    "up": "sent",
    "down": "received",
    "removed_here": "removed here",
    "removed_there": "removed there",
}


@click.command()
@click.argument("agent")
@click.argument("dir", type=click.Path(file_okay=False, resolve_path=True, path_type=File))
@server_options
@click.option("--once", is_flag=True, help="Make both the same once, and do not go on watching.")
@click.option(
    "--settle",
    type=click.FloatRange(0, 60),
    default=0.3,
    show_default=True,
    help="Seconds for which a file must have been left alone before it is read.",
)
def sync(agent: str, dir: File, as_json: bool, once: bool, settle: float, **given: Any) -> None:
    """Keep a directory and an agent's own files the same, both ways.

    What changed in DIR goes to AGENT (an id or a slug), what changed there comes to DIR, removals
    too. Where both have changed, both texts stay: the server's comes to lie beside yours, as
    NAME.conflict-….md; make yours what it should be, remove the other, and it goes on. Pinned and
    managed files come down, and an edit of them is set aside. Inherited files stay away: carrel
    pull has them all. Exit code 0: both are the same; 1: something has to be looked at, or it could
    not be done.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    teller = SyncReporter(dir, as_json=as_json, once=once)
    work = _once if once else _watch
    run(
        lambda: work(agent, dir, settle, given, teller),
        as_json=as_json,
        expects=(CarrelError,),
    )
    if not teller.ok:
        sys.exit(FAILED)


class SyncReporter:
    """Says what was done, and what is wrong once and not with every pass."""

    def __init__(self, dir: File, *, as_json: bool, once: bool) -> None:
        self._dir, self._json, self._once = dir, as_json, once
        self._said: set[str] = set()
        self._first = True
        self.ok = True

    def left_over(self, names: list[str]) -> None:
        for name in names:
            click.echo(f"kept {name}: it was left over when a sync was interrupted", err=True)

    def tell(self, outcome: PassResult | str) -> None:
        if isinstance(outcome, str):
            click.echo(outcome, err=True)
            return
        lines = _wrong(outcome)
        news = [line for line in lines if line not in self._said]
        done = any(getattr(outcome, name) for name in _SAYS)
        if not self._json:
            self._say(outcome, news, done)
        elif self._once or done or news:
            self._answer(outcome)
        if self._first and not self._once:
            click.echo(f"{self._dir}: watching both sides; Ctrl-C ends it", err=True)
        self.ok, self._first, self._said = outcome.ok, False, set(lines)

    def _say(self, outcome: PassResult, news: list[str], done: bool) -> None:
        for name, word in _SAYS.items():
            for path in getattr(outcome, name):
                click.echo(f"{word} {path}")
        for line in news:
            click.echo(line, err=True)
        if self._once:
            click.echo(f"{self._dir}: {_state(outcome, done)}")

    def _answer(self, outcome: PassResult) -> None:
        """One object, and where it goes on, one a line."""
        if self._once:
            print_json(_told(self._dir, outcome))
            return
        import json  # noqa: PLC0415 - so that --help stays quick

        click.echo(json.dumps(_told(self._dir, outcome), ensure_ascii=False))


async def _once(
    agent: str, dir: File, settle: float, given: dict[str, Any], to: SyncReporter
) -> None:
    from carrel.cli.connection import connect  # noqa: PLC0415 - so that --help stays quick
    from carrel.cli.sync.watch_loop import opened, passes  # noqa: PLC0415 - as above

    async with (
        connect(given) as (desk, server),
        opened(desk, server, agent, dir, settle) as (sides, kept),
    ):
        to.left_over(kept)
        with progress_bars() as watch:
            outcome = await passes(sides, settle, watch=watch)
        to.tell(outcome)


async def _watch(
    agent: str, dir: File, settle: float, given: dict[str, Any], to: SyncReporter
) -> None:
    from carrel.cli.connection import connect  # noqa: PLC0415 - so that --help stays quick
    from carrel.cli.sync.watch_loop import follow, opened, run_until_stopped  # noqa: PLC0415 - as above

    async with (
        connect(given) as (desk, server),
        opened(desk, server, agent, dir, settle) as (sides, kept),
    ):
        to.left_over(kept)
        await run_until_stopped(follow(sides, desk, settle, to.tell))


def _state(outcome: PassResult, done: bool) -> str:
    if not outcome.ok:
        return "not the same yet"
    return "the same now" if done else "the same already"


def _wrong(outcome: PassResult) -> list[str]:
    """What somebody should look at, a line each."""
    lines = [
        f"conflict {path}: both have changed; the server's text is in {copy}"
        for path, copy in outcome.conflicts.items()
    ]
    lines += [
        f"refused {path}: the server's stays; your text is in {copy}"
        for path, copy in outcome.kept.items()
    ]
    lines += [f"left out {path}: {reason}" for path, reason in sorted(outcome.problems.items())]
    lines += [f"redacted {path}: the server keeps it without secrets" for path in outcome.redacted]
    return lines


def _told(dir: File, outcome: PassResult) -> dict[str, Any]:
    return {
        "ok": outcome.ok,
        "directory": str(dir),
        "sent": outcome.up,
        "received": outcome.down,
        "removedHere": outcome.removed_here,
        "removedThere": outcome.removed_there,
        "redacted": outcome.redacted,
        "conflicts": [{"path": path, "copy": copy} for path, copy in outcome.conflicts.items()],
        "refused": [{"path": path, "copy": copy} for path, copy in outcome.kept.items()],
        "leftOut": [{"path": path, "problem": reason} for path, reason in outcome.problems.items()],
    }
