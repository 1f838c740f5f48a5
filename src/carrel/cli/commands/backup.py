"""`carrel backup`: writes the whole store to one file."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import (
    PathArgument,
    format_size,
    print_json,
    progress_bars,
    run,
    store_options,
)

if TYPE_CHECKING:
    from carrel.actions.maintenance.backup import BackupResult


@click.command()
@click.argument("file", type=PathArgument(dir_okay=False, path_type=File))
@store_options
def backup(file: File, as_json: bool, **options: Any) -> None:
    """Write the whole store to one file.

    FILE holds a consistent snapshot; the store may be serving meanwhile. The file is read back and
    verified before it gets its name. It restores into SQLite and PostgreSQL. The vault key is NOT
    included: keep CARREL_VAULT_KEY, or vault.key in the data directory, in another place.
    """
    result = run(lambda: _take_backup(file, options), as_json=as_json)
    rows = sum(table.rows for table in result.manifest.tables.values())
    if as_json:
        tables = {name: table.rows for name, table in result.manifest.tables.items()}
        facts = {"file": str(result.file), "bytes": result.size, "rows": rows, "tables": tables}
        key = {"vaultKey": result.manifest.vault_key, "vaultKeyIncluded": False}
        print_json({"ok": True, **facts, "objects": result.manifest.objects, **key})
        return
    click.echo(
        f"{result.file}: {rows} rows, {result.manifest.objects} objects, {format_size(result.size)}"
    )
    click.echo(
        f"The vault key ({result.manifest.vault_key}) is not included: without it the"
        " secrets in the backup cannot be decrypted. Store it separately."
    )


async def _take_backup(file: File, options: dict[str, Any]) -> BackupResult:
    from carrel.actions.accounts import vault_check  # noqa: PLC0415 - so that --help stays quick
    from carrel.actions.maintenance.backup import create_backup  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        key = await vault_check.load_fingerprint(store.ports) or store.ports.vault.fingerprint()
        with progress_bars() as on_progress:
            return await create_backup(
                store.maintenance,
                store.objects,
                file,
                now=store.ports.clock.now(),
                vault_key=key,
                on_progress=on_progress,
            )
