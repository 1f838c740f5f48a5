"""Formats results: colours and relative times on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.core.hidden_characters import show_hidden_characters

if TYPE_CHECKING:
    from rich.console import Console

    from carrel_client import DirectoryEntry, FileRow

Cell = str | tuple[str, str]
"""Text, optionally with its style on a terminal."""

_DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
_AGE_UNITS: Final = ((60, "minute"), (3600, "hour"), (86_400, "day"))
_MAX_RELATIVE_SECONDS: Final = 14 * 86_400
_SHORT_DIGEST_CHARS: Final = 12


def console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - so that --help stays quick

    return Console(highlight=False, soft_wrap=False)


def is_terminal() -> bool:
    """Whether results go to a terminal."""
    return console().is_terminal


def is_interactive() -> bool:
    """Whether the command can ask the user questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def printable(text: str) -> str:
    """One line of text with hidden characters shown, which a terminal would interpret."""
    return show_hidden_characters(text).replace("\n", "⟨U+000A⟩")


def format_age(timestamp: datetime, now: datetime) -> str:
    """Format a time relative to `now`, or as a date if it is 14 days old or older."""
    seconds = (now - timestamp).total_seconds()
    if seconds < _AGE_UNITS[0][0]:
        return "just now"
    if seconds >= _MAX_RELATIVE_SECONDS:
        return timestamp.astimezone(UTC).date().isoformat()
    size, unit = [step for step in _AGE_UNITS if seconds >= step[0]][-1]
    count = int(seconds // size)
    return f"{count} {unit}{'' if count == 1 else 's'} ago"


def format_time(timestamp: datetime | str | None) -> str:
    """Format a time: relative on a terminal, else in UTC to the second."""
    if timestamp is None:
        return ""
    moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    if is_terminal():
        return format_age(moment, datetime.now(UTC))
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def short_digest(sha256: str | None) -> str:
    return "" if sha256 is None else sha256[:_SHORT_DIGEST_CHARS]


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[Cell]], right_aligned: Sequence[str] = ()
) -> None:
    """Print rows under headers; in a pipe aligned and never truncated or wrapped."""
    if not is_terminal():
        _print_aligned(headers, [[_cell_text(cell) for cell in row] for row in rows], right_aligned)
        return
    from rich.table import Table  # noqa: PLC0415 - so that --help stays quick
    from rich.text import Text  # noqa: PLC0415 - as above

    grid = Table(box=None, pad_edge=False, header_style="dim")
    for head in headers:
        grid.add_column(head, justify="right" if head in right_aligned else "left", overflow="fold")
    for row in rows:
        styles = [cell[1] if isinstance(cell, tuple) else "" for cell in row]
        grid.add_row(*(Text(_cell_text(c), style=s) for c, s in zip(row, styles, strict=True)))
    console().print(grid)


def _cell_text(cell: Cell) -> str:
    return printable(cell[0] if isinstance(cell, tuple) else cell)


def _print_aligned(
    headers: Sequence[str], rows: list[list[str]], right_aligned: Sequence[str]
) -> None:
    all_rows = [list(headers), *rows]
    widths = [max(len(row[column]) for row in all_rows) for column in range(len(headers))]
    for row in all_rows:
        cells = [
            cell.rjust(width) if head in right_aligned else cell.ljust(width)
            for head, cell, width in zip(headers, row, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def print_diff(text: str) -> None:
    """Print a unified diff; in a pipe byte for byte."""
    if not is_terminal():
        click.echo(text.encode(), nl=False)
        return
    terminal = console()
    for line in text.removesuffix("\n").split("\n") if text else ():
        bold = line.startswith(("--- ", "+++ "))
        style = "bold" if bold else _DIFF_STYLES.get(line[:1])
        terminal.print(printable(line), style=style, markup=False, soft_wrap=True)


def print_content(text: str) -> None:
    """Print a file's text; in a pipe byte for byte.

    On a terminal, control characters are replaced.
    """
    if not is_terminal():
        click.echo(text.encode(), nl=False)
        return
    for line in text.removesuffix("\n").split("\n") if text else ():
        click.echo(printable(line))


def file_to_json(row: FileRow) -> dict[str, Any]:
    """Return a file as the API encodes it."""
    facts: dict[str, Any] = {
        "path": row.path,
        "contentType": row.content_type,
        "version": row.version,
        "etag": row.etag,
        "updatedAt": row.updated_at.isoformat(),
        "source": row.source,
        "class": row.file_class,
        "sha256": row.sha256,
        "size": row.size,
        "fileId": row.file_id,
        "updateAvailable": row.update_available,
    }
    optional_facts = {
        "renderedSha256": row.rendered_sha256,
        "content": getattr(row, "content", None),
        "error": row.error,
    }
    return facts | {name: fact for name, fact in optional_facts.items() if fact is not None}


def entry_to_json(entry: DirectoryEntry) -> dict[str, Any]:
    """Return an entry of a directory as the API encodes it."""
    return {
        "path": entry.path,
        "type": "directory" if entry.is_directory else "file",
        "size": entry.size,
        "updatedAt": entry.updated_at.isoformat(),
        "version": entry.version,
        "etag": entry.etag,
        "contentType": entry.content_type,
        "fileId": entry.file_id,
    }


def print_records(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Print the named fields of records as a table."""
    print_table(names, [[str(row.get(name) or "") for name in names] for row in rows])
