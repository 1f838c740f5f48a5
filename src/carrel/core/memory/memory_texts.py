"""Texts that the tool `memory` shows and changes: files by line, and directories.

Only a line feed ends a line; other line ends are part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.core.errors import NotFound, ValidationError

MAX_LINES: Final = 999_999
MAX_VIEW_CHARS: Final = 65_536
"""Characters of a file that one view shows."""
_NUMBER_WIDTH: Final = 6
_CONTEXT_LINES: Final = 2
"""Lines shown before and after the first line that changed."""
_MAX_LISTED_LINES: Final = 100
_DEPTH: Final = 2
"""Levels of a directory that a view lists."""
_UNITS: Final = "BKMG"


class FileView(Struct, frozen=True):
    """Numbered lines of a file."""

    text: str
    lines: int
    """Lines of the whole file."""
    first: int
    last: int
    """Last line that is shown; less than `first` if none is."""


def view_lines(name: str, content: str, view_range: Sequence[int] | None = None) -> FileView:
    """Show lines with their numbers, up to MAX_VIEW_CHARS. Raises ValidationError.

    The end of a range may be -1: the last line.
    """
    lines = content.split("\n")
    if len(lines) > MAX_LINES:
        raise ValidationError(f"File {name} exceeds maximum line limit of 999,999 lines.")
    first, last = _parse_range(view_range, len(lines))
    visible: list[str] = []
    size = 0
    for number in range(first, last + 1):
        line = _number_line(number, lines[number - 1])
        size += len(line) + 1
        if visible and size > MAX_VIEW_CHARS:
            break
        visible.append(line[: MAX_VIEW_CHARS + _NUMBER_WIDTH])
    text = f"Here's the content of {name} with line numbers:\n" + "\n".join(visible)
    end = first + len(visible) - 1
    if end < last:
        text += f"\n[output truncated: {len(lines)} lines; go on with view_range [{end + 1}, -1]]"
    return FileView(text, len(lines), first, end)


def _parse_range(view_range: Sequence[int] | None, count: int) -> tuple[int, int]:
    if view_range is None:
        return 1, count
    first, last = view_range
    first, last = max(1, first), count if last == -1 else min(last, count)
    if first > count or last < first:
        raise ValidationError(
            f"Invalid `view_range` parameter: {list(view_range)}. "
            f"It should be within the lines [1, {count}]."
        )
    return first, last


def _number_line(number: int, line: str) -> str:
    return f"{number:>{_NUMBER_WIDTH}}\t{line}"


def replace_once(name: str, content: str, old: str, new: str) -> tuple[str, int]:
    """Replace the only occurrence of a text; return also the line where it begins.

    Raises NotFound if it does not occur, ValidationError if it occurs more than once.
    """
    if not old:
        raise ValidationError("old_str must not be empty")
    position = content.find(old)
    if position < 0:
        raise NotFound(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {name}."
        )
    if content.find(old, position + 1) >= 0:
        raise ValidationError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{_list_lines(content, old)}. Please ensure it is unique"
        )
    line = content.count("\n", 0, position) + 1
    return content[:position] + new + content[position + len(old) :], line


def _list_lines(content: str, text: str) -> str:
    """Numbers of the first lines in which a text begins."""
    numbers: list[str] = []
    line, start = 1, 0
    while (position := content.find(text, start)) >= 0:
        if len(numbers) == _MAX_LISTED_LINES:
            return ", ".join((*numbers, "…"))
        line += content.count("\n", start, position)
        numbers.append(str(line))
        end = content.find("\n", position)
        if end < 0:
            break
        start, line = end + 1, line + 1
    return ", ".join(numbers)


def make_snippet(content: str, line: int) -> str:
    """Numbered lines around a changed one."""
    lines = content.split("\n")
    first, last = max(1, line - _CONTEXT_LINES), min(len(lines), line + _CONTEXT_LINES)
    return "\n".join(_number_line(n, lines[n - 1]) for n in range(first, last + 1))


def insert_text(content: str, line: int, text: str) -> str:
    """Insert a text after a line, 0 for the beginning. Raises ValidationError."""
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    if not 0 <= line <= len(lines):
        raise ValidationError(
            f"Invalid `insert_line` parameter: {line}. "
            f"It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, text.rstrip("\n"))
    return "\n".join(lines) + "\n"


class ListedPath(Struct, frozen=True):
    """A file or directory in a listing."""

    path: str
    """Relative to the listed directory; that of a directory ends in a slash."""
    size: int


def list_directory(files: Mapping[str, int], directories: Iterable[str]) -> list[ListedPath]:
    """List two levels of a directory by name, without hidden names.

    `files` have sizes; `directories` exist by themselves. All are relative paths.
    """
    sizes: dict[tuple[str, ...], int] = {}
    own_directories: set[tuple[str, ...]] = set()
    for path, size in files.items():
        *parents, name = path.split("/")
        for depth in range(1, min(len(parents), _DEPTH) + 1):
            directory = (*parents[:depth], "")
            sizes[directory] = sizes.get(directory, 0) + size
        if len(parents) < _DEPTH:
            sizes[(*parents, name)] = size
    for path in directories:
        segments = path.split("/")
        own_directories |= {
            (*segments[:depth], "") for depth in range(1, min(len(segments), _DEPTH) + 1)
        }
    for directory in own_directories:
        sizes.setdefault(directory, 0)
    visible = {
        key: size
        for key, size in sizes.items()
        if not any(segment.startswith(".") for segment in key)
    }
    return [ListedPath("/".join(key), visible[key]) for key in sorted(visible)]


def format_directory(name: str, listed: Sequence[ListedPath], total: int) -> str:
    """Listing of a directory with the sizes of what is in it."""
    header = f"Here're the files and directories up to 2 levels deep in {name}, excluding hidden"
    lines = [f"{format_size(total)}\t{name}"]
    lines += [f"{format_size(item.size)}\t{name}/{item.path}" for item in listed]
    return f"{header} items:\n" + "\n".join(lines)


def format_size(size: int) -> str:
    """Size in bytes, or in the largest unit of 1024 that it reaches."""
    unit = 0 if size <= 0 else min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    amount = size / 1024**unit
    return (
        f"{int(amount)}{_UNITS[unit]}" if amount == int(amount) else f"{amount:.1f}{_UNITS[unit]}"
    )
