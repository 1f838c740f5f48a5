"""The six commands of the memory tool as steps over files, blocking or awaiting.

A command yields calls on the files and receives their results, so one implementation serves both.
Writes are conditional: what another writer changed meanwhile is read again, never overwritten.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from carrel_client.drivers import AsyncDriver, SyncDriver
from carrel_client.errors import Conflict, NotFound, Refusal, WorkspaceConflict
from carrel_client.file_changes import DeleteFile
from carrel_client.file_models import File, FileRow
from carrel_client.files import Files

ROOT: Final = "/memories"
_MAX_LINES: Final = 999_999
_NUMBER_WIDTH: Final = len(str(_MAX_LINES))
_MAX_ATTEMPTS: Final = 10
_CONTEXT_LINES: Final = 2
_LISTED_LEVELS: Final = 2

Call: TypeAlias = Callable[[Any], Any]
Command: TypeAlias = Generator[Call, Any, str]
Edit: TypeAlias = Callable[[str], str]


class MemoryCommandError(Exception):
    """The command cannot be done; the message is for the model."""


def run_command(command: Command, files: Files[SyncDriver]) -> str:
    """Run a command and return what the model is told. Raises MemoryCommandError."""
    result, failure = None, None
    while True:
        call = _advance(command, result, failure)
        if isinstance(call, str):
            return call
        result = failure = None
        try:
            result = call(files)
        except Refusal as refusal:
            failure = refusal


async def run_command_async(command: Command, files: Files[AsyncDriver]) -> str:
    """Like run_command, for a client that is awaited."""
    result, failure = None, None
    while True:
        call = _advance(command, result, failure)
        if isinstance(call, str):
            return call
        result = failure = None
        try:
            result = await call(files)
        except Refusal as refusal:
            failure = refusal


def _advance(command: Command, result: Any, failure: Refusal | None) -> Call | str:
    """Give a command the result of its last call; return its next call, or its own result."""
    try:
        return command.send(result) if failure is None else command.throw(failure)
    except StopIteration as end:
        return str(end.value)
    except Refusal as refusal:
        raise MemoryCommandError(refusal.message) from refusal


@dataclass(frozen=True, slots=True)
class MemoryCommands:
    """Commands over the files below a directory."""

    directory: str
    """Directory of the files that stands for ``/memories``; empty for all files."""

    def view(self, path: str, view_range: Sequence[int] | None) -> Command:
        target = self._target(path)
        file = yield from self._find(target)
        if file is not None:
            return _numbered(path, file.content, view_range)
        prefix = f"{target}/" if target else ""
        rows: Sequence[FileRow] = yield lambda files: files.list(prefix)
        if not rows and target != self.directory:
            raise _absent(path)
        return "\n".join(_listing(path, prefix, rows))

    def create(self, path: str, text: str) -> Command:
        target = self._target(path)
        try:
            yield lambda files: files.put(target, text, if_none_match="*")
        except (WorkspaceConflict, Conflict):
            raise MemoryCommandError(f"File {path} already exists") from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> Command:
        def replace(content: str) -> str:
            _check_unique(path, content, old)
            return content.replace(old, new)

        before, after = yield from self._edit(path, replace)
        return _snippet(after, before[: before.find(old)].count("\n"))

    def insert(self, path: str, line: int, text: str) -> Command:
        def insert(content: str) -> str:
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= line <= len(lines):
                raise MemoryCommandError(
                    f"Invalid `insert_line` parameter: {line}."
                    f" It should be within the range [0, {len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            return "\n".join(lines) + "\n"

        yield from self._edit(path, insert)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> Command:
        target = self._below_root(path, "delete")
        deletion = DeleteFile(path=target, recursive=True)
        try:
            yield lambda files: files.commit([deletion])
        except NotFound:
            raise MemoryCommandError(f"The path {path} does not exist") from None
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> Command:
        source, target = self._below_root(old_path, "rename"), self._target(new_path)
        occupied = MemoryCommandError(f"The destination {new_path} already exists")
        if (yield lambda files: files.list(f"{target}/" if target else "")):
            raise occupied
        try:
            yield lambda files: files.move(source, target, if_none_match="*")
        except NotFound:
            raise MemoryCommandError(f"The path {old_path} does not exist") from None
        except (WorkspaceConflict, Conflict):
            raise occupied from None
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> Command:
        """Delete everything below the directory, in one commit."""
        rows = yield lambda files: files.list(f"{self.directory}/" if self.directory else "")
        deletions = [DeleteFile(path=row.path) for row in rows]
        if deletions:
            yield lambda files: files.commit(deletions)
        return "All memory cleared"

    def _target(self, path: str) -> str:
        """Path of the file that a path of the tool names."""
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise MemoryCommandError(f"Path must start with {ROOT}, got: {path}")
        normal = posixpath.normpath(path)
        if normal != ROOT and not normal.startswith(f"{ROOT}/"):
            raise MemoryCommandError(f"Path {path} would escape {ROOT} directory")
        return f"{self.directory}{normal.removeprefix(ROOT)}".strip("/")

    def _below_root(self, path: str, verb: str) -> str:
        target = self._target(path)
        if target == self.directory:
            raise MemoryCommandError(f"Cannot {verb} the {ROOT} directory itself")
        return target

    def _find(self, target: str) -> Generator[Call, Any, File | None]:
        if not target:
            return None
        try:
            file: File = yield lambda files: files.get(target, raw=True)
        except NotFound:
            return None
        return file

    def _edit(self, path: str, edit: Edit) -> Generator[Call, Any, tuple[str, str]]:
        """Replace the content of a file; return it before and after."""
        target = self._target(path)
        for _ in range(_MAX_ATTEMPTS):
            file = yield from self._find(target)
            if file is None:
                raise _absent(path)
            after, etag = edit(file.content), file.etag
            try:
                yield _put(target, after, etag)
            except WorkspaceConflict:
                continue
            return file.content, after
        raise MemoryCommandError(f"{path} is being changed by others; try again")


def _put(target: str, content: str, etag: str) -> Call:
    return lambda files: files.put(target, content, if_match=etag)


def _absent(path: str) -> MemoryCommandError:
    return MemoryCommandError(f"The path {path} does not exist. Please provide a valid path.")


def _numbered(path: str, content: str, view_range: Sequence[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > _MAX_LINES:
        raise MemoryCommandError(f"File {path} exceeds maximum line limit of {_MAX_LINES:,} lines.")
    first, last = 1, len(lines)
    if view_range is not None and len(view_range) == 2:
        first = max(1, view_range[0])
        last = last if view_range[1] == -1 else view_range[1]
    text = "\n".join(_with_numbers(lines, first, last))
    return f"Here's the content of {path} with line numbers:\n{text}"


def _with_numbers(lines: Sequence[str], first: int, last: int) -> Iterator[str]:
    for number, line in enumerate(lines[first - 1 : last], first):
        yield f"{number:>{_NUMBER_WIDTH}}\t{line}"


def _snippet(content: str, changed: int) -> str:
    """The lines around one that was changed."""
    lines = content.split("\n")
    first, last = max(1, changed + 1 - _CONTEXT_LINES), changed + 1 + _CONTEXT_LINES
    text = "\n".join(_with_numbers(lines, first, last))
    head = "The memory file has been edited. Here is the snippet showing the change"
    return f"{head} (with line numbers):\n{text}"


def _check_unique(path: str, content: str, text: str) -> None:
    """Raises MemoryCommandError unless the text occurs exactly once."""
    places = list(_occurrences(content, text))
    none = "No replacement was performed"
    if not places:
        raise MemoryCommandError(f"{none}, old_str `{text}` did not appear verbatim in {path}.")
    if content.count(text) > 1:
        numbers = ", ".join(str(content[:place].count("\n") + 1) for place in places)
        raise MemoryCommandError(
            f"{none}. Multiple occurrences of old_str `{text}` in lines: {numbers}."
            " Please ensure it is unique"
        )


def _occurrences(content: str, text: str) -> Iterator[int]:
    place = content.find(text)
    while place != -1 and text:
        yield place
        place = content.find(text, place + 1)


def _listing(path: str, prefix: str, rows: Sequence[FileRow]) -> Iterator[str]:
    """Lines of a directory: sizes and paths up to two levels deep, hidden ones left out."""
    sizes: dict[str, int] = {"": 0}
    for row in rows:
        parts = row.path[len(prefix) :].split("/")
        if any(part.startswith(".") for part in parts):
            continue
        names = ["".join(f"{part}/" for part in parts[:depth]) for depth in range(len(parts))]
        for name in (*names, "/".join(parts)):
            sizes[name] = sizes.get(name, 0) + (row.size or 0)
    yield (
        f"Here're the files and directories up to {_LISTED_LEVELS} levels deep in {path},"
        " excluding hidden items:"
    )
    yield f"{_size_text(sizes.pop(''))}\t{path}"
    for name in sorted(sizes):
        if name.rstrip("/").count("/") < _LISTED_LEVELS:
            yield f"{_size_text(sizes[name])}\t{path.rstrip('/')}/{name}"


def _size_text(size: int) -> str:
    amount, unit = float(size), "B"
    for larger in "KMG":
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f}{unit}" if amount == int(amount) else f"{amount:.1f}{unit}"
