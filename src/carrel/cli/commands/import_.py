"""`carrel import`: uploads a directory to an agent, a template or a workspace."""

from __future__ import annotations

import sys
from pathlib import Path as Directory
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import (
    EXIT_FAILED,
    PathArgument,
    ProgressCallback,
    fail,
    print_json,
    progress_bars,
    server_options,
)
from carrel.cli.names import OWNER
from carrel.cli.targets import TargetOwner

if TYPE_CHECKING:
    from carrel.cli.import_files.directory_scan import LocalFiles
    from carrel.cli.import_files.import_plan import ImportOptions, ImportStep
    from carrel_client import AsyncClient

_STYLES: Final = {"new": "green", "changed": "yellow"}


@click.command("import")
@click.argument("dir", type=PathArgument(exists=True, file_okay=False, path_type=Directory))
@click.argument("owner", type=OWNER, metavar="WHERE")
@server_options
@click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
@click.option("--accept", is_flag=True, help="Override pinned files of an agent.")
@click.option("--reason", help="Reason, for the history.")
def import_(
    dir: Directory, owner: TargetOwner, as_json: bool, dry_run: bool, **options: Any
) -> None:
    """Upload a directory's files to an agent or another layer.

    WHERE is an agent by its id or slug, templates/NAME, defaults or workspaces/ID. Equal files are
    not written; files that exist only on the server stay. Hidden files and temporary files of
    editors are skipped. If DIR contains a symbolic link or an invalid name, nothing is written.
    Files are written in commits of up to 500, each file only if it has not changed since the
    comparison. If the server refuses a commit, its files are written one at a time, and a failed
    file does not stop the others. Exit code 0: all files match DIR; 1: some do not.
    """
    accept, reason = options.pop("accept"), options.pop("reason")
    local = _scan_local(dir, as_json=as_json)

    async def work(client: AsyncClient) -> tuple[list[ImportStep], int]:
        from carrel.cli.dry_run import DRY_RUN_CONCURRENCY, dry_run_client  # noqa: PLC0415 - as below
        from carrel.cli.import_files.import_plan import ImportOptions  # noqa: PLC0415 - so --help is quick

        if not dry_run:
            with progress_bars() as on_progress:
                return await _run_import(
                    client, owner, local, ImportOptions(reason, accept), on_progress
                )
        action = ImportOptions(reason, accept, DRY_RUN_CONCURRENCY)
        return await _run_import(dry_run_client(client, ""), owner, local, action, lambda *_: None)

    steps, refused = run_on_server(work, options, as_json=as_json)
    failed = any(step.problem for step in steps)
    if as_json:
        skipped = local.skipped
        rows = [_step_to_json(step, dry_run) for step in steps]
        facts = {"ok": not failed, "dryRun": dry_run, "refusedCommits": refused}
        print_json({**facts, "files": rows, "passedOver": skipped})
    else:
        if refused and not dry_run:
            click.echo("A commit was refused; its files were written one at a time.", err=True)
        _print_steps(owner, steps, dry_run)
    if failed:
        sys.exit(EXIT_FAILED)


def _scan_local(dir: Directory, *, as_json: bool) -> LocalFiles:
    """Scan the directory. Exits if it contains files that cannot be imported."""
    from carrel.cli.import_files.directory_scan import scan_directory  # noqa: PLC0415 - so --help is quick

    try:
        local_files = scan_directory(str(dir))
    except OSError as problem:
        fail(f"{problem.filename}: {problem.strerror}", as_json=as_json)
    if not local_files.problems:
        return local_files
    problems = sorted(local_files.problems.items())
    if as_json:
        rows = [{"path": path, "problem": reason} for path, reason in problems]
        print_json({"ok": False, "problem": "nothing was written", "files": rows})
        sys.exit(EXIT_FAILED)
    for path, reason in problems:
        click.echo(formatting.printable(f"{path}: {reason}"), err=True)
    fail("these files cannot be imported; nothing was written", as_json=as_json)


async def _run_import(
    client: AsyncClient,
    owner: TargetOwner,
    local: LocalFiles,
    action: ImportOptions,
    on_progress: ProgressCallback,
) -> tuple[list[ImportStep], int]:
    from carrel.cli.import_files.import_plan import execute_plan, plan_import  # noqa: PLC0415 - as above

    files = files_of(client, owner)
    steps = plan_import(local, {row.path: row for row in await files.list()})
    return steps, await execute_plan(files, local, steps, action, on_progress)


def _print_steps(owner: TargetOwner, steps: list[ImportStep], dry_run: bool) -> None:
    pending = [step for step in steps if step.change != "equal"]
    for step in pending:
        replaced = f" (replaces {step.source})" if step.source else ""
        would = "would be " if dry_run and step.change == "changed" else ""
        line = formatting.printable(f"{step.path}: {would}{step.change}{replaced}")
        if step.problem:
            click.echo(formatting.printable(f"error: {step.path}: {step.problem}"), err=True)
        else:
            click.secho(line, fg=_STYLES[step.change])
        if step.redacted:
            verb = "would be" if dry_run else "was"
            click.echo(formatting.printable(f"{step.path}: a secret {verb} redacted"), err=True)
    failed = sum(bool(step.problem) for step in pending)
    verb = "would be written" if dry_run else "written"
    equal = len(steps) - len(pending)
    summary = f"{owner}: {len(pending) - failed} {verb}, {equal} equal"
    click.echo(summary + (f", {failed} failed" if failed else ""), err=True)


def _step_to_json(step: ImportStep, dry_run: bool) -> dict[str, Any]:
    written = not dry_run and step.change != "equal" and not step.problem
    facts: dict[str, Any] = {"path": step.path, "change": step.change, "written": written}
    facts |= {"version": step.version, "redacted": step.redacted}
    return facts | ({"problem": step.problem} if step.problem else {})
