"""``carrel export``: the store in a layout that others read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, print_json, progress_bars, run, store_options

if TYPE_CHECKING:
    from carrel.actions.catalog.writer import ExportResult


@click.command()
@click.argument("place", metavar="DEST")
@click.option(
    "--layout", type=click.Choice(["catalog"]), required=True, help="How files are laid out there."
)
@click.option("--tenant", metavar="SLUG", help="Export only this tenant.")
@click.option("--adopt", is_flag=True, help="Take over a catalog that others have put there.")
@store_options
def export(place: str, layout: str, as_json: bool, **given: Any) -> None:
    """Write files to where others read them.

    DEST is a directory or s3://bucket/prefix. What differs there is written, what is the same is
    left alone, and what is in the store no more is removed, so that doing it again is quick. The
    store may be serving meanwhile. Exit code 1: something could not be written; all else was.
    """
    done = run(lambda: _export(place, given), as_json=as_json)
    if as_json:
        print_json({"ok": not done.failures, "layout": layout, **_told(done)})
    else:
        _say(place, done)
    if done.failures:
        sys.exit(FAILED)


async def _export(place: str, given: dict[str, Any]) -> ExportResult:
    from carrel.wiring.catalog import export_catalog  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    only, adopt = given.pop("tenant"), given.pop("adopt")
    async with open_store(given) as store:
        with progress_bars() as watch:
            return await export_catalog(store, place, only=only, adopt=adopt, watch=watch)


def _told(done: ExportResult) -> dict[str, Any]:
    return {
        "tenants": done.tenants,
        "written": done.written,
        "unchanged": done.unchanged,
        "deleted": done.deleted,
        "failures": [{"key": each.key, "problem": each.reason} for each in done.failures],
        "leftOut": done.left_out,
    }


def _say(place: str, done: ExportResult) -> None:
    counts = f"{done.written} written, {done.unchanged} unchanged, {done.deleted} deleted"
    click.echo(f"{place}: {counts}")
    for name in done.left_out:
        click.echo(f"left out: {name}: its name means something else in this layout", err=True)
    for each in done.failures:
        click.echo(f"error: {each.key}: {each.reason}", err=True)
