"""`carrel export`: writes the store's files to a directory or bucket."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import EXIT_FAILED, print_json, progress_bars, run, store_options

if TYPE_CHECKING:
    from carrel.actions.catalog.writer import ExportResult


@click.command()
@click.argument("place", metavar="DEST")
@click.option(
    "--layout", type=click.Choice(["catalog"]), required=True, help="Layout of the exported files."
)
@click.option("--tenant", metavar="SLUG", help="Export only this tenant.")
@click.option(
    "--adopt", is_flag=True, help="Take over an existing catalog that Carrel did not write."
)
@store_options
def export(place: str, layout: str, as_json: bool, **options: Any) -> None:
    """Export files for other systems.

    DEST is a directory or s3://bucket/prefix. Only differences are written: changed files are
    replaced and files that are no longer in the store are deleted, so repeated exports are fast.
    The store may be serving meanwhile. Exit code 1: some files could not be written; all others
    were.
    """
    result = run(lambda: _export(place, options), as_json=as_json)
    if as_json:
        print_json({"ok": not result.failures, "layout": layout, **_result_to_json(result)})
    else:
        _print_result(place, result)
    if result.failures:
        sys.exit(EXIT_FAILED)


async def _export(destination: str, options: dict[str, Any]) -> ExportResult:
    from carrel.wiring.catalog import export_catalog  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    only, adopt = options.pop("tenant"), options.pop("adopt")
    async with open_store(options) as store:
        with progress_bars() as on_progress:
            return await export_catalog(
                store, destination, only=only, adopt=adopt, watch=on_progress
            )


def _result_to_json(result: ExportResult) -> dict[str, Any]:
    return {
        "tenants": result.tenants,
        "written": result.written,
        "unchanged": result.unchanged,
        "deleted": result.deleted,
        "failures": [
            {"key": failure.key, "problem": failure.reason} for failure in result.failures
        ],
        "leftOut": result.left_out,
    }


def _print_result(destination: str, result: ExportResult) -> None:
    counts = f"{result.written} written, {result.unchanged} unchanged, {result.deleted} deleted"
    click.echo(f"{destination}: {counts}")
    for name in result.left_out:
        click.echo(f"skipped: {name}: the name is reserved in this layout", err=True)
    for failure in result.failures:
        click.echo(f"error: {failure.key}: {failure.reason}", err=True)
