"""``carrel apply``: agents as a file says they should be."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, print_json, progress_bars, run, server_options

if TYPE_CHECKING:
    from carrel.cli.apply.agents_file import DesiredAgent
    from carrel.cli.apply.reconcile import ApplyResult


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=File))
@server_options
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def apply(file: File, as_json: bool, dry_run: bool, **given: Any) -> None:
    """Make agents what a file says.

    FILE is an agents.yaml: a list of agents, each with an id (its slug) and what is said of it;
    what is not said stays, and what is so already is left alone. Where a workspace names a
    directory that exists, its files become the agent's own the first time; carrel sync keeps them
    the same from then on. Exit code 0: all is as the file says; 1: something could not be done; all
    else was.
    """
    from carrel.cli.apply.yaml_reader import FileError  # noqa: PLC0415 - as above
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    foreseen = (CarrelError, FileError)
    done = run(lambda: _apply(file, dry_run, given), as_json=as_json, expects=foreseen)
    ok = all(each.ok for each in done)
    if as_json:
        print_json({"ok": ok, "dryRun": dry_run, "agents": [_told(each) for each in done]})
    else:
        for each in done:
            _say(each, dry_run)
    if not ok:
        sys.exit(FAILED)


async def _apply(file: File, dry: bool, given: dict[str, Any]) -> list[ApplyResult]:
    from carrel.cli.apply.reconcile import apply_agent  # noqa: PLC0415 - so that --help is quick
    from carrel.cli.connection import connect  # noqa: PLC0415 - as above

    wanted = _wanted(file)
    done: list[ApplyResult] = []
    async with connect(given) as (desk, server):
        with progress_bars() as watch:
            for each in wanted:
                done.append(await apply_agent(desk, server, each, dry=dry))
                watch("applying", len(done), len(wanted))
    return done


def _wanted(file: File) -> list[DesiredAgent]:
    """What the file says. Raises Wrong with its name."""
    from carrel.cli.apply.agents_file import agents_of  # noqa: PLC0415 - as above
    from carrel.cli.apply.yaml_reader import FileError  # noqa: PLC0415 - as above

    try:
        return agents_of(_text(file), file.resolve().parent)
    except FileError as problem:
        raise FileError(problem.line, problem.why, file.name) from None


def _text(file: File) -> str:
    from carrel.cli.apply.yaml_reader import LONGEST, FileError  # noqa: PLC0415 - as above

    with file.open("rb") as opened:
        content = opened.read(LONGEST + 1)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(1, "it is not UTF-8") from None


def _say(done: ApplyResult, dry: bool) -> None:
    would = "would be " if dry and done.result in {"created", "changed"} else ""
    told = f"{done.id}: {would}{done.result}"
    if done.result == "changed":
        told += f" ({', '.join(sorted(done.changes))})"
    if done.files is not None:
        told += f", {len(done.files.up)} files {'would be ' if dry else ''}taken"
    click.echo(told)
    if done.problem:
        click.echo(f"error: {done.id}: {done.problem}", err=True)
    for path, reason in sorted(done.files.problems.items()) if done.files else ():
        click.echo(f"left out: {done.id}: {path}: {reason}", err=True)


def _told(done: ApplyResult) -> dict[str, Any]:
    told: dict[str, Any] = {"id": done.id, "ok": done.ok, "result": done.result}
    told["changes"] = {
        name: {"from": before, "to": after} for name, (before, after) in done.changes.items()
    }
    if done.files is not None:
        left_out = [
            {"path": path, "problem": reason}
            for path, reason in sorted(done.files.problems.items())
        ]
        told |= {"taken": done.files.up, "leftOut": left_out}
    return told | ({"problem": done.problem} if done.problem else {})
