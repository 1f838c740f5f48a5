"""``carrel restore``: a store from a backup."""

from __future__ import annotations

import sys
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, PathArgument, print_json, progress_bars, run, store_options

if TYPE_CHECKING:
    from carrel.actions.maintenance.archive import Manifest
    from carrel.core.maintenance.findings import FindingList


@click.command()
@click.argument("file", type=PathArgument(exists=True, dir_okay=False, path_type=File))
@store_options
def restore(file: File, as_json: bool, **given: Any) -> None:
    """Fill an empty store from a backup.

    All of FILE is restored, or nothing. The backup is verified first, and the store is examined
    afterwards. Secrets open only with the vault key that they were sealed with, which is not in
    the backup.
    """
    manifest, findings, key = run(lambda: _restore(file, given), as_json=as_json)
    rows = sum(table.rows for table in manifest.tables.values())
    other = manifest.vault_key is not None and manifest.vault_key != key
    if as_json:
        told = [f"{each.subject}: {each.text}" for each in findings.items]
        keys = {"vaultKey": key, "vaultKeyOfBackup": manifest.vault_key}
        counts = {"rows": rows, "objects": manifest.objects}
        print_json({"ok": findings.is_clean, **counts, "findings": told, **keys})
    else:
        click.echo(f"restored {rows} rows and {manifest.objects} objects")
        for each in findings.items:
            click.echo(f"{each.severity}: {each.subject}: {each.text}")
    if other:
        click.echo(
            f"It was sealed under the vault key {manifest.vault_key}, and cannot be served with"
            f" {key}: set CARREL_VAULT_KEY, or put the old vault.key into the data directory.",
            err=True,
        )
    if findings.errors:
        sys.exit(FAILED)


async def _restore(file: File, given: dict[str, Any]) -> tuple[Manifest, FindingList, str]:
    from carrel.actions.maintenance import backup  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given, create=True) as store:
        with progress_bars() as watch:
            manifest, findings = await backup.restore(
                file,
                store.maintenance,
                store.objects,
                now=store.ports.clock.now(),
                on_progress=watch,
            )
        return manifest, findings, store.ports.vault.fingerprint()
