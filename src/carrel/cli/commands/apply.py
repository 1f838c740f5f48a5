"""`carrel apply`: reconciles agents with an agents file."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import EXIT_FAILED, print_json, progress_bars, run, server_options

if TYPE_CHECKING:
    from carrel.cli.apply.agents_file import DesiredAgent
    from carrel.cli.apply.reconcile import ApplyResult


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=File))
@server_options
@click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
def apply(file: File, as_json: bool, dry_run: bool, **options: Any) -> None:
    """Create and update agents from a file.

    FILE is an agents.yaml: a list of agents, each with an id (its slug) and settings. Settings that
    are not listed stay unchanged. If an agent's workspace names an existing directory, its files
    are uploaded the first time; carrel sync keeps both equal from then on. Exit code 0: all agents
    match the file; 1: an agent or file failed; the others were applied.
    """
    from carrel.cli.apply.yaml_reader import FileError  # noqa: PLC0415 - as above
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    expected_errors = (CarrelError, FileError)
    results = run(lambda: _apply(file, dry_run, options), as_json=as_json, expected=expected_errors)
    ok = all(result.ok for result in results)
    if as_json:
        print_json(
            {"ok": ok, "dryRun": dry_run, "agents": [_result_to_json(result) for result in results]}
        )
    else:
        for result in results:
            _print_result(result, dry_run)
    if not ok:
        sys.exit(EXIT_FAILED)


async def _apply(file: File, dry_run: bool, options: dict[str, Any]) -> list[ApplyResult]:
    from carrel.cli.apply.reconcile import apply_agent  # noqa: PLC0415 - so that --help is quick
    from carrel.cli.connection import connect  # noqa: PLC0415 - as above
    from carrel.cli.dry_run import DryRun  # noqa: PLC0415 - as above

    desired = _read_agents(file)
    results: list[ApplyResult] = []
    async with connect(options) as (client, server):
        shared = DryRun(client, server) if dry_run else None
        with progress_bars() as on_progress:
            for agent in desired:
                results.append(await apply_agent(client, server, agent, dry_run=shared))
                on_progress("applying", len(results), len(desired))
    return results


def _read_agents(file: File) -> list[DesiredAgent]:
    """Parse the file. Raises FileError with the file's name."""
    from carrel.cli.apply.agents_file import parse_agents  # noqa: PLC0415 - as above
    from carrel.cli.apply.yaml_reader import FileError  # noqa: PLC0415 - as above

    try:
        return parse_agents(_read_text(file), file.resolve().parent)
    except FileError as problem:
        raise FileError(problem.line, problem.reason, file.name) from None


def _read_text(file: File) -> str:
    from carrel.cli.apply.yaml_reader import MAX_FILE_BYTES, FileError  # noqa: PLC0415 - as above

    with file.open("rb") as stream:
        content = stream.read(MAX_FILE_BYTES + 1)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(1, "not UTF-8") from None


def _print_result(result: ApplyResult, dry_run: bool) -> None:
    would = "would be " if dry_run and result.result in {"created", "changed"} else ""
    line = f"{result.id}: {would}{result.result}"
    if result.result == "changed":
        line += f" ({', '.join(sorted(result.changes))})"
    if result.files is not None:
        line += f", {len(result.files.up)} files {'would be ' if dry_run else ''}uploaded"
    click.echo(line)
    if result.problem:
        click.echo(f"error: {result.id}: {result.problem}", err=True)
    for path, reason in sorted(result.files.problems.items()) if result.files else ():
        click.echo(f"skipped: {result.id}: {path}: {reason}", err=True)


def _result_to_json(result: ApplyResult) -> dict[str, Any]:
    data: dict[str, Any] = {"id": result.id, "ok": result.ok, "result": result.result}
    data["changes"] = {
        name: {"from": before, "to": after} for name, (before, after) in result.changes.items()
    }
    if result.files is not None:
        left_out = [
            {"path": path, "problem": reason}
            for path, reason in sorted(result.files.problems.items())
        ]
        data |= {"taken": result.files.up, "leftOut": left_out}
    return data | ({"problem": result.problem} if result.problem else {})
