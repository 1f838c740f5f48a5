"""``carrel import``: a directory's files as files of an agent, a template or a workspace."""

from __future__ import annotations

import sys
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_at, run_on_server
from carrel.cli.console import FAILED, PathArgument, fail, print_json, progress_bars, server_options
from carrel.cli.targets import PLACE, TargetOwner

if TYPE_CHECKING:
    from carrel.cli.import_files.directory_scan import LocalFiles
    from carrel.cli.import_files.import_plan import ImportAction, ImportStep
    from carrel_client import AsyncClient

_STYLES: Final = {"new": "green", "changed": "yellow"}


@click.command("import")
@click.argument("dir", type=PathArgument(exists=True, file_okay=False, path_type=Directory))
@click.argument("where", type=PLACE, metavar="WHERE")
@server_options
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--accept", is_flag=True, help="Override pinned files of an agent.")
@click.option("--reason", help="Why, for the history.")
def import_(dir: Directory, where: TargetOwner, as_json: bool, dry_run: bool, **given: Any) -> None:
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

    async def work(desk: AsyncClient) -> list[ImportStep]:
        from carrel.cli.import_files.import_plan import ImportAction  # noqa: PLC0415 - so --help is quick

        return await _import(desk, where, local, None if dry_run else ImportAction(reason, accept))

    steps = run_on_server(work, given, as_json=as_json)
    failed = any(step.problem for step in steps)
    if as_json:
        passed = local.passed_over
        rows = [_told(step, dry_run) for step in steps]
        print_json({"ok": not failed, "dryRun": dry_run, "files": rows, "passedOver": passed})
    else:
        _say(where, steps, dry_run)
    if failed:
        sys.exit(FAILED)


def _local(dir: Directory, *, as_json: bool) -> LocalFiles:
    """What the directory holds, if all of it can be imported."""
    from carrel.cli.import_files.directory_scan import scan_directory  # noqa: PLC0415 - so --help is quick

    try:
        found = scan_directory(str(dir))
    except OSError as problem:
        fail(f"{problem.filename}: {problem.strerror}", as_json=as_json)
    if not found.problems:
        return found
    problems = sorted(found.problems.items())
    if as_json:
        rows = [{"path": path, "problem": reason} for path, reason in problems]
        print_json({"ok": False, "problem": "nothing was written", "files": rows})
        sys.exit(FAILED)
    for path, reason in problems:
        click.echo(formatting.plain(f"{path}: {reason}"), err=True)
    fail("these cannot be imported; nothing was written", as_json=as_json)


async def _import(
    desk: AsyncClient, where: TargetOwner, local: LocalFiles, how: ImportAction | None
) -> list[ImportStep]:
    from carrel.cli.import_files.import_plan import execute_plan, planned  # noqa: PLC0415 - as above

    files = files_at(desk, where)
    steps = planned(local, {row.path: row for row in await files.list()})
    if how is not None:
        with progress_bars() as watch:
            await execute_plan(files, local, steps, how, watch)
    return steps


def _say(where: TargetOwner, steps: list[ImportStep], dry: bool) -> None:
    due = [step for step in steps if step.change != "equal"]
    for step in due:
        over = f" (over {step.over})" if step.over else ""
        would = "would be " if dry and step.change == "changed" else ""
        line = formatting.plain(f"{step.path}: {would}{step.change}{over}")
        if step.problem:
            click.echo(formatting.plain(f"error: {step.path}: {step.problem}"), err=True)
        else:
            click.secho(line, fg=_STYLES[step.change])
        if step.redacted:
            click.echo(formatting.plain(f"{step.path}: a secret was redacted"), err=True)
    failed = sum(bool(step.problem) for step in due)
    verb = "would be written" if dry else "written"
    equal = len(steps) - len(due)
    told = f"{where}: {len(due) - failed} {verb}, {equal} equal"
    click.echo(told + (f", {failed} failed" if failed else ""), err=True)


def _told(step: ImportStep, dry: bool) -> dict[str, Any]:
    written = not dry and step.change != "equal" and not step.problem
    facts: dict[str, Any] = {"path": step.path, "change": step.change, "written": written}
    facts |= {"version": step.version, "redacted": step.redacted}
    return facts | ({"problem": step.problem} if step.problem else {})
