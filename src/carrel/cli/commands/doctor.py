"""`carrel doctor`: checks the integrity of a store."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import (
    EXIT_FAILED,
    PathArgument,
    print_json,
    progress_bars,
    run,
    store_options,
)

if TYPE_CHECKING:
    from carrel.core.maintenance.findings import FindingList

IsolationReport = dict[str, Any]


@click.command()
@store_options
@click.option(
    "--backup",
    type=PathArgument(exists=True, dir_okay=False, path_type=File),
    help="Check a backup instead of the store.",
)
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
def doctor(as_json: bool, backup: File | None, strict: bool, **options: Any) -> None:
    """Check the integrity of the store.

    The store may be serving meanwhile. Checks that every file has its content, every digest is
    right, no version is missing, every run can read its snapshot, nothing is left over, no path is
    a file in one layer and a directory in another, every SKILL.md is valid, and the counts of the
    overview and the inbox are right. Exit code 0: no errors (there may be warnings); 1: errors.
    """
    work = _examine(options) if backup is None else _examine_backup(backup)
    findings, isolation = run(lambda: work, as_json=as_json)
    if as_json:
        print_json(_findings_to_json(findings) | ({"sandbox": isolation} if isolation else {}))
    else:
        _print_isolation(isolation)
        _print_findings(findings)
    if findings.errors or (strict and findings.warnings):
        sys.exit(EXIT_FAILED)


async def _examine(options: dict[str, Any]) -> tuple[FindingList, IsolationReport]:
    from carrel.actions.fleet.tally_check import check_tallies  # noqa: PLC0415 - keeps --help quick
    from carrel.actions.maintenance.integrity import check_secrets, check_store  # noqa: PLC0415 - as above
    from carrel.actions.overlay.path_clashes import check_path_clashes  # noqa: PLC0415 - as above
    from carrel.actions.skills.skill_check import check_skills  # noqa: PLC0415 - as above
    from carrel.ports import CorruptContent  # noqa: PLC0415 - as above
    from carrel.wiring.lazy_local_sandbox import isolation_report  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        now, grace = store.ports.clock.now(), store.settings.gc_grace_minutes * 60_000
        with progress_bars() as on_progress:
            findings = await check_store(
                store.maintenance, store.objects, now=now, grace=grace, on_progress=on_progress
            )
        try:
            await check_secrets(store.ports, findings)
            await check_path_clashes(store.ports, findings)
            await check_skills(store.ports, findings)
            await check_tallies(store.ports, findings)
        except CorruptContent as problem:
            findings.error("database", str(problem))
        return findings, await isolation_report(store.ports)


async def _examine_backup(file: File) -> tuple[FindingList, IsolationReport]:
    from carrel.actions.maintenance.backup import examine_backup  # noqa: PLC0415 - keeps --help quick

    with progress_bars() as on_progress:
        return await examine_backup(file, on_progress=on_progress), {}


def _print_isolation(isolation: IsolationReport) -> None:
    """Print the sandbox isolation tier and what stronger tiers lack."""
    if isolation:
        click.echo(f"sandbox: {isolation['tier']}")
        for requirement in isolation["lacking"]:
            click.echo(f"  {requirement}")


def _findings_to_json(findings: FindingList) -> dict[str, Any]:
    return {
        "ok": findings.is_clean,
        "errors": findings.errors,
        "warnings": findings.warnings,
        "findings": [
            {"level": finding.severity, "subject": finding.subject, "text": finding.text}
            for finding in findings.items
        ],
    }


def _print_findings(findings: FindingList) -> None:
    for finding in findings.items:
        level = click.style(finding.severity, fg="red" if finding.severity == "error" else "yellow")
        click.echo(f"{level}: {finding.subject}: {finding.text}")
    if findings.omitted_count:
        click.echo(f"… and {findings.omitted_count} more")
    warnings = _count(findings.warnings, "warning")
    if findings.errors:
        click.echo(f"{_count(findings.errors, 'error')}, {warnings}")
    else:
        click.echo(f"no problems found, {warnings}" if findings.warnings else "no problems found")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
