"""`carrel restore`: restores a store from a backup."""

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
    from carrel.actions.maintenance.archive import Manifest
    from carrel.core.maintenance.findings import FindingList


@click.command()
@click.argument("file", type=PathArgument(exists=True, dir_okay=False, path_type=File))
@store_options
def restore(file: File, as_json: bool, **options: Any) -> None:
    """Restore a backup into an empty store.

    All of FILE is restored, or nothing. The backup is verified first, and the store is checked
    afterwards. Secrets can be decrypted only with the original vault key, which is not in the
    backup.
    """
    manifest, findings, key = run(lambda: _restore(file, options), as_json=as_json)
    rows = sum(table.rows for table in manifest.tables.values())
    key_differs = manifest.vault_key is not None and manifest.vault_key != key
    if as_json:
        finding_lines = [f"{finding.subject}: {finding.text}" for finding in findings.items]
        keys = {"vaultKey": key, "vaultKeyOfBackup": manifest.vault_key}
        counts = {"rows": rows, "objects": manifest.objects}
        print_json({"ok": findings.is_clean, **counts, "findings": finding_lines, **keys})
    else:
        click.echo(f"restored {rows} rows and {manifest.objects} objects")
        for finding in findings.items:
            click.echo(f"{finding.severity}: {finding.subject}: {finding.text}")
    if key_differs:
        click.echo(
            f"The backup was encrypted with the vault key {manifest.vault_key}, and cannot be"
            f" served with {key}: set CARREL_VAULT_KEY, or put the old vault.key into the"
            " data directory.",
            err=True,
        )
    if findings.errors:
        sys.exit(EXIT_FAILED)


async def _restore(file: File, options: dict[str, Any]) -> tuple[Manifest, FindingList, str]:
    from carrel.actions.maintenance import backup  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options, create=True) as store:
        with progress_bars() as on_progress:
            manifest, findings = await backup.restore(
                file,
                store.maintenance,
                store.objects,
                now=store.ports.clock.now(),
                on_progress=on_progress,
            )
        return manifest, findings, store.ports.vault.fingerprint()
