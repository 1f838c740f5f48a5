"""``carrel doctor``: whether everything in a store agrees with everything else."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, PathArgument, print_json, progress_bars, run, store_options

if TYPE_CHECKING:
    from carrel.core.maintenance.findings import FindingList

Walls = dict[str, Any]


@click.command()
@store_options
@click.option(
    "--backup",
    type=PathArgument(exists=True, dir_okay=False, path_type=File),
    help="Examine a backup instead of the store.",
)
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
def doctor(as_json: bool, backup: File | None, strict: bool, **given: Any) -> None:
    """Examine the store and say what is wrong with it.

    It may be serving meanwhile. Every file has its bytes, every digest is right, no version is
    missing, every run can see what it froze, nothing is left over. Exit code 0: nothing is
    wrong (there may be warnings); 1: something is.
    """
    work = _examine(given) if backup is None else _examine_backup(backup)
    findings, walls = run(lambda: work, as_json=as_json)
    if as_json:
        print_json(_told(findings) | ({"sandbox": walls} if walls else {}))
    else:
        _say_walls(walls)
        _say(findings)
    if findings.errors or (strict and findings.warnings):
        sys.exit(FAILED)


async def _examine(given: dict[str, Any]) -> tuple[FindingList, Walls]:
    from carrel.actions.maintenance.integrity import check_secrets, check_store  # noqa: PLC0415 - keeps --help quick
    from carrel.wiring.lazy_local_sandbox import isolation_report  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        now, grace = store.ports.clock.now(), store.settings.gc_grace_minutes * 60_000
        with progress_bars() as watch:
            findings = await check_store(
                store.maintenance, store.objects, now=now, grace=grace, on_progress=watch
            )
        await check_secrets(store.ports, findings)
        return findings, await isolation_report(store.ports)


async def _examine_backup(file: File) -> tuple[FindingList, Walls]:
    from carrel.actions.maintenance.backup import examine_backup  # noqa: PLC0415 - keeps --help quick

    with progress_bars() as watch:
        return await examine_backup(file, on_progress=watch), {}


def _say_walls(walls: Walls) -> None:
    """What keeps commands apart from this machine, and what is missing for more."""
    if walls:
        click.echo(f"sandbox: {walls['tier']}")
        for each in walls["lacking"]:
            click.echo(f"  {each}")


def _told(findings: FindingList) -> dict[str, Any]:
    return {
        "ok": findings.is_clean,
        "errors": findings.errors,
        "warnings": findings.warnings,
        "findings": [
            {"level": each.severity, "subject": each.subject, "text": each.text}
            for each in findings.items
        ],
    }


def _say(findings: FindingList) -> None:
    for each in findings.items:
        level = click.style(each.severity, fg="red" if each.severity == "error" else "yellow")
        click.echo(f"{level}: {each.subject}: {each.text}")
    if findings.omitted_count:
        click.echo(f"… and {findings.omitted_count} more")
    if findings.errors:
        click.echo(f"{findings.errors} errors, {findings.warnings} warnings")
    else:
        warned = f", {findings.warnings} warnings" if findings.warnings else ""
        click.echo(f"nothing is wrong{warned}")
