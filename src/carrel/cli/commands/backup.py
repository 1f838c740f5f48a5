"""``carrel backup``: the whole store in one file."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import PathArgument, print_json, progress_bars, run, size, store_options

if TYPE_CHECKING:
    from carrel.actions.maintenance.backup import BackupResult


@click.command()
@click.argument("file", type=PathArgument(dir_okay=False, path_type=File))
@store_options
def backup(file: File, as_json: bool, **given: Any) -> None:
    """Write the whole store to one file.

    FILE holds the store as it is at this moment; it may be serving meanwhile. The file is read
    back and examined before it gets its name. It restores into SQLite and into PostgreSQL
    alike. The key of the vault is NOT in it: keep CARREL_VAULT_KEY, or vault.key in the data
    directory, in another place.
    """
    taken = run(lambda: _take(file, given), as_json=as_json)
    rows = sum(table.rows for table in taken.manifest.tables.values())
    if as_json:
        tables = {name: table.rows for name, table in taken.manifest.tables.items()}
        facts = {"file": str(taken.file), "bytes": taken.size, "rows": rows, "tables": tables}
        key = {"vaultKey": taken.manifest.vault_key, "vaultKeyIncluded": False}
        print_json({"ok": True, **facts, "objects": taken.manifest.objects, **key})
        return
    click.echo(f"{taken.file}: {rows} rows, {taken.manifest.objects} objects, {size(taken.size)}")
    click.echo(
        f"The key of the vault ({taken.manifest.vault_key}) is not in it: without that key the"
        " secrets in it cannot be opened. Keep it elsewhere."
    )


async def _take(file: File, given: dict[str, Any]) -> BackupResult:
    from carrel.actions.accounts import vault_check  # noqa: PLC0415 - so that --help stays quick
    from carrel.actions.maintenance.backup import create_backup  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        key = await vault_check.load_fingerprint(store.ports) or store.ports.vault.fingerprint()
        with progress_bars() as watch:
            return await create_backup(
                store.maintenance,
                store.objects,
                file,
                now=store.ports.clock.now(),
                vault_key=key,
                on_progress=watch,
            )
