"""Path, line and byte operations of the file tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import MAX_PATH_BYTES, Path
from carrel.core.search.linear_regex import InvalidRegex, LinearRegex, compile_regex, escape_regex

DEFAULT_RESULT_BYTES: Final = 65_536
"""Size of a tool result if the sandbox sets no limit."""
TRUNCATION_MARKER: Final = b"\n[output truncated]"
MAX_RESULT_BYTES: Final = 262_144
"""Size of a tool result, whatever limit the sandbox sets."""
DEFAULT_LINE_COUNT: Final = 2000
_NOTE_BYTES: Final = 100
"""Reserved for the note that more lines follow."""
_SCAN_BYTES: Final = 65_536
_MAX_GLOBS: Final = 64
_TRAVERSAL_MESSAGE: Final = "Invalid path: directory traversal not allowed"


def normalize_path(raw: str) -> str:
    """Return a path relative to the workspace root; empty for the root.

    Raises ValidationError. A leading slash means the workspace root.
    """
    parts = [part for part in raw.strip().split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ValidationError(_TRAVERSAL_MESSAGE)
    return "/".join(parts)


def parse_file_path(raw: str) -> Path:
    """Path of the file that a call names. Raises ValidationError."""
    text = normalize_path(raw)
    if not text:
        raise ValidationError("file_path must reference a file")
    return Path(text)


def truncate_output(content: bytes, limit: int) -> str:
    """Decode content and cut it to `limit` bytes, marker included, between characters."""
    # Replacing invalid UTF-8 never makes the text shorter.
    encoded = content[: limit + 1].decode(errors="replace").encode()
    if len(encoded) <= limit:
        return encoded.decode()
    prefix_length = max(0, limit - len(TRUNCATION_MARKER))
    return (
        encoded[:prefix_length].decode(errors="ignore")
        + TRUNCATION_MARKER[: limit - prefix_length].decode()
    )


def number_lines(
    content: bytes, offset: int, limit: int, max_bytes: int = MAX_RESULT_BYTES
) -> bytes:
    """Lines from `offset` with their numbers. Only a line feed ends a line.

    Stops after `max_bytes`, even if `limit` asks for more lines.
    """
    lines = NumberedLines(offset, limit, max_bytes)
    lines.feed(content)
    return lines.output()


class VisibleLines(Struct, frozen=True):
    """Lines of a file as a result shows them."""

    text: str
    first: int
    last: int
    total: int | None
    """Lines of the file; None if they were not counted."""
    next_line: int | None
    """First line that is not shown; None at the end of the file."""


class NumberedLines:
    """Lines of a content that is given in parts; see `number_lines`."""

    def __init__(self, offset: int, limit: int, max_bytes: int) -> None:
        self._first = offset if offset > 0 else 1
        max_lines = limit if limit > 0 else DEFAULT_LINE_COUNT
        self._max_lines = min(max_lines, max_bytes // len(b"     1\t\n") + 1)
        self._max_bytes, self._skipped, self._text = max_bytes, self._first - 1, b""
        self._line_ends, self._ends_in_line = 0, False

    @property
    def is_done(self) -> bool:
        """Whether further parts would not change the output."""
        return len(self._text) > self._max_bytes or self._text.count(b"\n") >= self._max_lines

    def feed(self, part: bytes) -> None:
        """Add a part, which ends at a line end unless it is the last."""
        self._line_ends += part.count(b"\n")
        self._ends_in_line = not part.endswith(b"\n") if part else self._ends_in_line
        if not self.is_done:
            self._add(part)

    def _add(self, part: bytes) -> None:
        start = _line_start(part, self._skipped + 1)
        if start >= len(part):
            self._skipped = max(0, self._skipped - part.count(b"\n"))
            return
        self._skipped = 0
        self._text += part[start : start + self._max_bytes + 1]

    def output(self) -> bytes:
        lines = self._text.split(b"\n", self._max_lines)
        if len(lines) > self._max_lines or not lines[-1]:
            lines.pop()
        numbered = enumerate(lines, self._first)
        return b"".join(b"%6d\t%b\n" % (number, line) for number, line in numbered)

    def visible(self, *, is_whole: bool) -> VisibleLines:
        """Return the lines that fit, with a note if more follow.

        `is_whole` says that every part of the content was given.
        """
        counted = self._line_ends + self._ends_in_line
        total = counted if is_whole else None
        output = self.output()
        if len(output) > self._max_bytes:
            end = output.rfind(b"\n", 0, max(0, self._max_bytes - _NOTE_BYTES))
            output = output[: (output.index(b"\n") if end < 0 else end) + 1]
        last = self._first + output.count(b"\n") - 1
        if total is not None and last >= total:
            is_beyond = self._first > max(total, 1)
            note, following = (f"[the file has {total} lines]" if is_beyond else ""), None
        else:
            of, following = "more" if total is None else str(total), last + 1
            note = f"[lines {self._first}-{last} of {of}; continue with offset {following}]"
        text = truncate_output(output + note.encode(), self._max_bytes)
        return VisibleLines(text, self._first, last, total, following)


def _line_start(content: bytes, number: int) -> int:
    """Position of a line; the end of the content if there is no such line."""
    position, remaining = 0, number - 1
    while remaining and position < len(content):
        newlines = content.count(b"\n", position, position + _SCAN_BYTES)
        if newlines < remaining:
            position, remaining = position + _SCAN_BYTES, remaining - newlines
            continue
        for _ in range(remaining):
            position = content.index(b"\n", position) + 1
        remaining = 0
    return position


def replace_text(
    content: bytes,
    old: bytes,
    new: bytes,
    *,
    replace_all: bool,
    name: str,
    check_size: Callable[[int], None] = lambda size: None,
) -> tuple[Iterator[bytes], int]:
    """Return the parts of the content with `old` replaced by `new` literally, and the count.

    Raises NotFound or ValidationError. Works on bytes, so all other content is unchanged.
    `check_size` receives the resulting size before it is allocated. Works in parts, since one call
    over a large content would keep all other threads waiting.
    """
    count = sum(matches for _, matches in _parts_with_matches(content, old))
    check_match_count(count, name, replace_all=replace_all)
    check_size(len(content) + count * (len(new) - len(old)))
    parts = _parts_with_matches(content, old)
    return (part.replace(old, new) if matches else part for part, matches in parts), count


def check_match_count(count: int, name: str, *, replace_all: bool) -> None:
    """Raise NotFound without a match, and ValidationError if one of several is meant."""
    if not count:
        raise NotFound(f"old_string not found in {name}")
    if count > 1 and not replace_all:
        raise ValidationError(
            f"old_string is not unique ({count} matches); add context or set replace_all"
        )


class MatchParts:
    """Cuts a content that is given in parts again, so that no part cuts a match."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._pending = b""
        self.matches = 0

    def feed(self, part: bytes) -> bytes:
        """Return what is complete so far."""
        content = self._pending + part
        *matches, rest = content.split(self._text)
        self.matches += len(matches)
        end = len(content) - min(len(rest), len(self._text) - 1)
        self._pending = content[end:]
        return content[:end]

    def finish(self) -> bytes:
        """Return the rest, which is too short for a match."""
        rest, self._pending = self._pending, b""
        return rest


def _parts_with_matches(content: bytes, old: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield parts of a content, none of which cuts a match, and the matches in each."""
    position, size = 0, max(_SCAN_BYTES, len(old))
    while position < len(content):
        part = content[position : position + size + len(old) - 1]
        *matches, rest = part.split(old)
        end = len(part) - len(rest) if matches else size
        yield part[:end], len(matches)
        position += min(end, len(part))


@lru_cache(maxsize=256)
def expand_braces(glob: str) -> tuple[str, ...]:
    """Return the globs without braces that a glob stands for: `{a,b}` is one of its options.

    A glob that stands for more than 64 is returned unchanged. Braces do not nest.
    """
    opening = glob.find("{")
    closing = glob.find("}", opening)
    if opening < 0 or closing < 0:
        return (glob,)
    options = glob[opening + 1 : closing].split(",")
    ends = expand_braces(glob[closing + 1 :])
    if len(options) * len(ends) > _MAX_GLOBS:
        return (glob,)
    return tuple(glob[:opening] + option + end for option in options for end in ends)


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> LinearRegex:
    """Compile a glob to a linear-time regular expression over bytes.

    Raises ValidationError. `*` and `?` match within one segment, `**` matches any number of
    segments, `{a,b}` matches either option, everything else is literal.
    """
    if len(pattern) > MAX_PATH_BYTES:
        raise ValidationError(f"a glob must have at most {MAX_PATH_BYTES} characters")
    try:
        options = "|".join(map(_glob_expression, expand_braces(pattern)))
        return compile_regex(f"(?s)(?:{options})")
    except (InvalidRegex, RecursionError):
        raise ValidationError("the glob is too complex") from None


def _glob_expression(glob: str) -> str:
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    expressions = []
    for index, part in enumerate(parts, 1):
        last = index == len(parts)
        if part == "**":
            expressions.append("(?:[^/]+/)*[^/]+" if last else "(?:[^/]+/)*")
        else:
            expressions.append("".join(map(_glob_character, part)) + ("" if last else "/"))
    return "".join(expressions)


def _glob_character(character: str) -> str:
    if character == "*":
        return "[^/]*"
    return "[^/]" if character == "?" else escape_regex(character)


def relative_to(root: str, path: Path) -> str | None:
    """Path relative to a directory; None if it is not below it."""
    if not root:
        return path.text
    return path.text[len(root) + 1 :] if path.text.startswith(root + "/") else None
