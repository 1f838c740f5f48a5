"""Prints records, asks before they are deleted, and reads changes from options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from carrel.cli import formatting
from carrel.cli.console import fail, print_json

Command = TypeVar("Command", bound=Callable[..., Any])
Row = Mapping[str, Any]


def print_page(
    collection: str, rows: Sequence[Row], columns: Sequence[str], *, as_json: bool, page: Any = None
) -> None:
    """Print records as a table, or as JSON under the name of their collection.

    A page adds the number of all records, and the cursor of the next page.
    """
    if as_json:
        counts = {} if page is None else {"total": page.total, "next": page.next}
        print_json({collection: [dict(row) for row in rows], **counts})
        return
    formatting.print_records(page_rows(rows), columns)
    if page is not None and page.next is not None:
        total = "" if page.total is None else f" of {page.total:,}"
        click.echo(f"{len(rows)}{total}; continue with --after {page.next}", err=True)


def print_record(row: Row, *, as_json: bool) -> None:
    """Print the fields of one record, a line each."""
    if as_json:
        print_json(dict(row))
        return
    cells = _row_cells(row)
    width = max(map(len, cells), default=0)
    for name, cell in cells.items():
        click.echo(f"{name.ljust(width)}  {formatting.printable(cell)}".rstrip())


def print_result(row: Row, text: str, *, as_json: bool) -> None:
    """Print what a command did: a line of text, or the record as JSON."""
    print_json(dict(row)) if as_json else click.echo(formatting.printable(text))


def page_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The texts of records' fields, as a table shows them."""
    return list(map(_row_cells, rows))


def _row_cells(row: Row) -> dict[str, str]:
    return {name: _cell(name, value) for name, value in row.items()}


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return formatting.format_time(value) if name == "at" or name.endswith("At") else value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    import json  # noqa: PLC0415 - so that --help stays quick

    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def yes_option(command: Command) -> Command:
    """Option of commands that ask for confirmation."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal; elsewhere exit with 1 unless confirmed with ``--yes``."""
    if yes:
        return
    if not formatting.is_interactive():
        fail(f"not confirmed; pass --yes: {question}", as_json=as_json)
    if not click.confirm(formatting.printable(question), err=True):
        click.echo("nothing was changed", err=True)
        sys.exit(1)


def given_fields(**options: Any) -> dict[str, Any]:
    """Fields of the options that were passed."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


def changed_fields(**options: Any) -> dict[str, Any]:
    """Fields that options change; an empty text clears. Raises UsageError if none."""
    fields = given_fields(**options)
    if not fields:
        raise click.UsageError("nothing to change; pass at least one option")
    return {name: None if value == "" else value for name, value in fields.items()}


def page_options(command: Command) -> Command:
    """Options of lists that have pages."""
    command = click.option("--after", metavar="CURSOR", help="With --limit: the next page.")(
        command
    )
    return click.option(
        "--limit", type=click.IntRange(1, 500), help="Only so many; by default all."
    )(command)
