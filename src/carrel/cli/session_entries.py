"""Entries of a session: read from a file, and printed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from carrel.cli.formatting import printable
from carrel.cli.tool_results import describe_result, structured_result

if TYPE_CHECKING:
    from carrel_client import NewEntry

_COLOURS: Final = {
    "user": "cyan",
    "assistant": "green",
    "tool": "yellow",
    "system": "magenta",
}


def parse_entries(file: TextIO) -> list[NewEntry]:
    """Entries of a JSON list, with the field names of the API. Raises click.UsageError."""
    from carrel_client import NewEntry  # noqa: PLC0415 - so that --help stays quick
    from carrel_client.models import camel_case  # noqa: PLC0415 - as above

    try:
        rows = json.load(file)
    except ValueError as error:
        raise click.UsageError(f"the entries are not JSON: {error}") from None
    if not (isinstance(rows, list) and rows):
        raise click.UsageError("the entries are not a JSON list")
    names = {camel_case(field.name): field.name for field in dataclasses.fields(NewEntry)}
    return [NewEntry(**_entry_fields(row, names)) for row in rows]


def _entry_fields(row: Any, names: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(row, dict) or "role" not in row:
        raise click.UsageError("an entry is a JSON object with a role")
    if unknown := row.keys() - names.keys():
        raise click.UsageError(f"an entry has no field {min(unknown)!a}")
    return {names[name]: value for name, value in row.items()}


def print_entry(entry: Mapping[str, Any]) -> None:
    """Print an entry with its text, or its item if that has no text."""
    when = entry["timestamp"][:19].replace("T", " ")
    click.echo(f"{entry['number']:>5}  {when}  {styled_role(entry['role'])}")
    facts = describe_result(structured_result(entry.get("item")))
    text = entry["content"] or (json.dumps(entry["item"]) if "item" in entry else "")
    for line in (*text.splitlines(), *facts):
        click.echo(f"       {printable(line)}")


def styled_role(role: str) -> str:
    return click.style(role, fg=_COLOURS.get(role))
