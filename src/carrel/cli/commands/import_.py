"""``carrel import``: a directory's files as files of an agent, a template or a workspace."""

from __future__ import annotations

import sys
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting as showing
from carrel.cli.connection import ask, files_at
from carrel.cli.console import FAILED, Name, answer, fail, server_options, watching
from carrel.cli.targets import PLACE, Place

if TYPE_CHECKING:
    from carrel.cli.import_files.directory_scan import Local
    from carrel.cli.import_files.import_plan import How, Step
    from carrel.client import AsyncClient

_STYLES: Final = {"new": "green", "changed": "yellow"}


@click.command("import")
@click.argument("dir", type=Name(exists=True, file_okay=False, path_type=Directory))
@click.argument("where", type=PLACE, metavar="WHERE")
@server_options
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--accept", is_flag=True, help="Override pinned files of an agent.")
@click.option("--reason", help="Why, for the history.")
def import_(dir: Directory, where: Place, as_json: bool, dry_run: bool, **given: Any) -> None:
    """Write a directory's files to an agent or another layer.

    WHERE is an agent by its id or slug, templates/NAME, defaults or workspaces/ID. What is equal
    there is not written; what only is there stays. Hidden files and what editors leave are passed
    over. If there is a link, or a name that is no path, or what is not text, nothing is written at
    all. Files are written one by one, each only if it is still as it was compared with: one that
    fails stops no other, and what became of each is told. Exit code 0: all is there as in DIR; 1:
    something is not.
    """
    accept, reason = given.pop("accept"), given.pop("reason")
    local = _local(dir, as_json=as_json)

    async def work(desk: AsyncClient) -> list[Step]:
        from carrel.cli.import_files.import_plan import How  # noqa: PLC0415 - so --help is quick

        return await _import(desk, where, local, None if dry_run else How(reason, accept))

    steps = ask(work, given, as_json=as_json)
    failed = any(step.problem for step in steps)
    if as_json:
        passed = local.passed_over
        rows = [_told(step, dry_run) for step in steps]
        answer({"ok": not failed, "dryRun": dry_run, "files": rows, "passedOver": passed})
    else:
        _say(where, steps, dry_run)
    if failed:
        sys.exit(FAILED)


def _local(dir: Directory, *, as_json: bool) -> Local:
    """What the directory holds, if all of it can be imported."""
    from carrel.cli.import_files.directory_scan import looked_at  # noqa: PLC0415 - so --help is quick

    try:
        found = looked_at(str(dir))
    except OSError as problem:
        fail(f"{problem.filename}: {problem.strerror}", as_json=as_json)
    if not found.problems:
        return found
    problems = sorted(found.problems.items())
    if as_json:
        rows = [{"path": path, "problem": why} for path, why in problems]
        answer({"ok": False, "problem": "nothing was written", "files": rows})
        sys.exit(FAILED)
    for path, why in problems:
        click.echo(showing.plain(f"{path}: {why}"), err=True)
    fail("these cannot be imported; nothing was written", as_json=as_json)


async def _import(desk: AsyncClient, where: Place, local: Local, how: How | None) -> list[Step]:
    from carrel.cli.import_files.import_plan import carry_out, planned  # noqa: PLC0415 - as above

    files = files_at(desk, where)
    steps = planned(local, {row.path: row for row in await files.list()})
    if how is not None:
        with watching() as watch:
            await carry_out(files, local, steps, how, watch)
    return steps


def _say(where: Place, steps: list[Step], dry: bool) -> None:
    due = [step for step in steps if step.change != "equal"]
    for step in due:
        over = f" (over {step.over})" if step.over else ""
        would = "would be " if dry and step.change == "changed" else ""
        line = showing.plain(f"{step.path}: {would}{step.change}{over}")
        if step.problem:
            click.echo(showing.plain(f"error: {step.path}: {step.problem}"), err=True)
        else:
            click.secho(line, fg=_STYLES[step.change])
        if step.redacted:
            click.echo(showing.plain(f"{step.path}: a secret was redacted"), err=True)
    failed = sum(bool(step.problem) for step in due)
    verb = "would be written" if dry else "written"
    equal = len(steps) - len(due)
    told = f"{where}: {len(due) - failed} {verb}, {equal} equal"
    click.echo(told + (f", {failed} failed" if failed else ""), err=True)


def _told(step: Step, dry: bool) -> dict[str, Any]:
    written = not dry and step.change != "equal" and not step.problem
    facts: dict[str, Any] = {"path": step.path, "change": step.change, "written": written}
    facts |= {"version": step.version, "redacted": step.redacted}
    return facts | ({"problem": step.problem} if step.problem else {})
