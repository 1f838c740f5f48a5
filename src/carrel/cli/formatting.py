"""What results look like: colours and relative times on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console

    from carrel_client import FileRow

Cell = str | tuple[str, str]
"""A text, perhaps with the style that it has on a terminal."""

_DIFF: Final = {"+": "green", "-": "red", "@": "cyan"}
_STEPS: Final = ((60, "minute"), (3600, "hour"), (86_400, "day"))
_RECENT: Final = 14 * 86_400
_DIGITS: Final = 12


def console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - so that --help stays quick

    return Console(highlight=False, soft_wrap=False)


def is_watched() -> bool:
    """Whether results go to a terminal."""
    return console().is_terminal


def can_ask() -> bool:
    """Whether somebody is there who could answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def plain(text: str) -> str:
    """A line without what would make a terminal do something."""
    return "".join(one if one.isprintable() or one == "\t" else "\ufffd" for one in text)


def ago(at: datetime, now: datetime) -> str:
    """How long ago that was; the day, where it is long ago."""
    seconds = (now - at).total_seconds()
    if seconds < _STEPS[0][0]:
        return "just now"
    if seconds >= _RECENT:
        return at.astimezone(UTC).date().isoformat()
    size, unit = [step for step in _STEPS if seconds >= step[0]][-1]
    count = int(seconds // size)
    return f"{count} {unit}{'' if count == 1 else 's'} ago"


def when(at: datetime | str | None) -> str:
    """A time as it is shown: relative where somebody watches, else to the second in UTC."""
    if at is None:
        return ""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    if is_watched():
        return ago(moment, datetime.now(UTC))
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def short(sha256: str | None) -> str:
    return "" if sha256 is None else sha256[:_DIGITS]


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], right: Sequence[str] = ()) -> None:
    """Rows under their heads; whole and aligned in a pipe, as wide as it is on a terminal."""
    if not is_watched():
        _say_aligned(heads, [[_text(cell) for cell in row] for row in rows], right)
        return
    from rich.table import Table  # noqa: PLC0415 - so that --help stays quick
    from rich.text import Text  # noqa: PLC0415 - as above

    shown = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        shown.add_column(head, justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        styles = [cell[1] if isinstance(cell, tuple) else "" for cell in row]
        shown.add_row(*(Text(_text(c), style=s) for c, s in zip(row, styles, strict=True)))
    console().print(shown)


def _text(cell: Cell) -> str:
    return plain(cell[0] if isinstance(cell, tuple) else cell)


def _say_aligned(heads: Sequence[str], rows: list[list[str]], right: Sequence[str]) -> None:
    every = [list(heads), *rows]
    widths = [max(len(row[at]) for row in every) for at in range(len(heads))]
    for row in every:
        cells = [
            cell.rjust(width) if head in right else cell.ljust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def diff(text: str) -> None:
    """A unified diff, to the byte in a pipe."""
    if not is_watched():
        click.echo(text.encode(), nl=False)
        return
    shown = console()
    for line in text.removesuffix("\n").split("\n") if text else ():
        bold = line.startswith(("--- ", "+++ "))
        style = "bold" if bold else _DIFF.get(line[:1])
        shown.print(plain(line), style=style, markup=False, soft_wrap=True)


def content(text: str) -> None:
    """A file's text: to the byte in a pipe, and harmless on a terminal."""
    if not is_watched():
        click.echo(text.encode(), nl=False)
        return
    for line in text.removesuffix("\n").split("\n") if text else ():
        click.echo(plain(line))


def told(row: FileRow) -> dict[str, Any]:
    """A file as the API tells of it."""
    facts: dict[str, Any] = {
        "path": row.path,
        "contentType": row.content_type,
        "version": row.version,
        "etag": row.etag,
        "updatedAt": row.updated_at.isoformat(),
        "source": row.source,
        "class": row.file_class,
        "sha256": row.sha256,
        "updateAvailable": row.update_available,
    }
    more = {
        "renderedSha256": row.rendered_sha256,
        "content": getattr(row, "content", None),
        "error": row.error,
    }
    return facts | {name: fact for name, fact in more.items() if fact is not None}


def facts_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Some facts of some records."""
    table(names, [[str(row.get(name) or "") for name in names] for row in rows])
