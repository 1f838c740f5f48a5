"""Files of a workspace by absolute POSIX paths, with the errors of an operating system."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from carrel_client.drivers import Steps, steps_of
from carrel_client.errors import (
    Conflict,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel_client.file_bytes import BYTES_TYPE, fetch, guess_type
from carrel_client.file_changes import DeleteFile, DirectoryEntry
from carrel_client.file_models import FileRow
from carrel_client.files import Files
from carrel_client.http_messages import HttpResponse
from carrel_client.runtimes.posix_paths import LINK_TYPE, PathResolver, is_link

_MAX_ATTEMPTS: Final = 10
_MAX_VERSIONS: Final = 1000
_TEXT_BYTES: Final = 2**20
"""Size up to which content without a known type is checked for text."""


@dataclass(frozen=True, slots=True)
class PosixEntry:
    """A file or directory; of a link, what it points to."""

    path: str
    """As it was requested, or a path below it."""
    is_directory: bool
    size: int | None
    """Bytes of a file; None for a directory, and for a link to nothing."""

    @property
    def name(self) -> str:
        return posixpath.basename(posixpath.normpath(self.path))


@dataclass(frozen=True, slots=True)
class _SeenVersion:
    """A regular file, not a link, as it was last seen."""

    etag: str
    content_type: str


class PosixFiles:
    """The files below a root, as a process sees them: links are followed, errors are OSErrors.

    Nothing else of the machine exists. NotFound means that there is no such workspace.
    """

    def __init__(self, files: Files[Any], root: str) -> None:
        self._files, self._paths = files, PathResolver(files, root)
        self._versions: dict[str, _SeenVersion] = {}

    def read_bytes(self, path: str) -> Steps[bytes]:
        """Raises FileNotFoundError, IsADirectoryError."""
        with os_errors(path):
            file = self._paths.relative(path)
            content = None if file is None else (yield from self._read(file))
            if content is None:
                real = yield from self._real_file(path)
                content = None if real == file else (yield from self._read(real))
            if content is None:
                is_directory = (yield from self.stat(path)).is_directory
                raise (IsADirectoryError if is_directory else FileNotFoundError)(path)
            return content

    def _read(self, file: str) -> Steps[bytes | None]:
        """The bytes of a regular file; None if there is none at this path."""
        if not file:
            return None
        try:
            response: HttpResponse = yield from fetch(self._files._path(file), {})
        except NotFound:
            return None
        headers = response.headers
        if headers.get("content-type") == LINK_TYPE:
            return None
        self._remember(file, headers.get("etag", ""), headers.get("content-type", BYTES_TYPE))
        return response.content

    def write_bytes(self, path: str, content: bytes) -> Steps[None]:
        """Write a file, with its directories; a link stays one.

        Raises IsADirectoryError, NotADirectoryError.
        """
        with os_errors(path):
            file = self._paths.relative(path)
            if file is None or not (yield from self._write(file, content)):
                real = yield from self._real_file(path)
                if real == file or not (yield from self._write(real, content)):
                    raise NotADirectoryError(path)

    def _write(self, file: str, content: bytes) -> Steps[bool]:
        """Whether it was written; False if the path leads over a link or a file.

        The condition makes sure that a link is not replaced, so no request is needed to see what
        is there. Raises IsADirectoryError.
        """
        if not file:
            raise IsADirectoryError(self._paths.root)
        for _ in range(_MAX_ATTEMPTS):
            version = self._versions.get(file)
            try:
                row: FileRow = yield from steps_of(
                    self._files.upload,
                    file,
                    content,
                    content_type=version.content_type if version else _content_type(file, content),
                    if_match=version.etag if version else None,
                    if_none_match=None if version else "*",
                )
            except WorkspaceConflict:
                if not (yield from self._look(file)):
                    return False
            except Conflict as conflict:
                occupant = str(conflict.details.get("path", ""))
                if occupant == file or occupant.startswith(f"{file}/"):
                    raise IsADirectoryError(self._paths.absolute(file)) from None
                return False
            else:
                self._remember(file, row.etag, row.content_type)
                return True
        raise OSError(f"others keep changing {self._paths.absolute(file)!r}")

    def _look(self, file: str) -> Steps[bool]:
        """Remember what is at a path now; False if it is a link."""
        entry: DirectoryEntry | None = yield from steps_of(self._files.stat, file)
        self._versions.pop(file, None)
        if entry is None or entry.is_directory:
            return True
        if is_link(entry):
            return False
        self._remember(file, entry.etag or "", entry.content_type or BYTES_TYPE)
        return True

    def stat(self, path: str) -> Steps[PosixEntry]:
        """Raises FileNotFoundError, and OSError for a loop of links."""
        with os_errors(path):
            if self._paths.is_above_root(path):
                return PosixEntry(path, True, None)
            file = self._paths.relative(path)
            entry: DirectoryEntry | None = None
            if file is not None:
                entry = yield from steps_of(self._files.stat, file)
            if entry is None or is_link(entry):
                real = yield from self._paths.resolve(path)
                if self._paths.is_above_root(real):
                    return PosixEntry(path, True, None)
                target = self._paths.relative(real)
                if target is None or (target == file and entry is None):
                    raise FileNotFoundError(path)
                entry = yield from steps_of(self._files.stat, target)
                if entry is None:
                    raise FileNotFoundError(path)
            return PosixEntry(path, entry.is_directory, None if entry.is_directory else entry.size)

    def exists(self, path: str) -> Steps[bool]:
        """Whether there is a file or directory; False for a link to nothing."""
        try:
            yield from self.stat(path)
        except OSError:
            return False
        return True

    def list_directory(self, path: str) -> Steps[list[PosixEntry]]:
        """What is directly in a directory, by name.

        Raises FileNotFoundError, NotADirectoryError.
        """
        with os_errors(path):
            directory = self._paths.relative(path)
            rows: tuple[DirectoryEntry, ...] = ()
            if directory is not None:
                rows = yield from steps_of(self._files.list_directory, directory)
            if not rows:
                if not (yield from self.stat(path)).is_directory:
                    raise NotADirectoryError(path)
                real = yield from self._paths.resolve(path)
                directory = self._paths.relative(real)
                if directory is None:
                    return [self._way_to_root(path, real)]
                rows = yield from steps_of(self._files.list_directory, directory)
            entries = []
            for row in rows:
                child = posixpath.join(path, posixpath.basename(row.path))
                entries.append((yield from self._entry(child, row)))
            return entries

    def _entry(self, path: str, row: DirectoryEntry) -> Steps[PosixEntry]:
        if not is_link(row):
            return PosixEntry(path, row.is_directory, None if row.is_directory else row.size)
        try:
            return (yield from self.stat(path))
        except OSError:
            return PosixEntry(path, False, None)

    def _way_to_root(self, path: str, real: str) -> PosixEntry:
        """The only entry of a directory that the root is in."""
        if not self._paths.is_above_root(real):
            raise FileNotFoundError(path)
        name = self._paths.root[len(real) :].strip("/").partition("/")[0]
        return PosixEntry(posixpath.join(path, name), True, None)

    def make_directory(self, path: str) -> Steps[None]:
        """Create a directory and those above it; does nothing if it exists.

        Raises FileExistsError, NotADirectoryError.
        """
        with os_errors(path):
            directory = self._paths.relative(path)
            if directory is None or not (yield from self._make(directory)):
                if (yield from self.exists(path)):
                    if (yield from self.stat(path)).is_directory:
                        return
                    raise FileExistsError(path)
                real = yield from self._real_file(path)
                if real == directory or not (yield from self._make(real)):
                    raise NotADirectoryError(path)

    def _make(self, directory: str) -> Steps[bool]:
        """Whether it is a directory now; False if the path is or leads over a file."""
        if directory:
            try:
                yield from steps_of(self._files.make_directory, directory)
            except Conflict:
                return False
        return True

    def remove(self, path: str) -> Steps[None]:
        """Remove a file, a link, or a directory with everything in it.

        Raises FileNotFoundError, and ValueError for the root and the directories that it is in.
        """
        with os_errors(path):
            self._check_removable(path)
            file = self._paths.relative(path)
            if file is None or not (yield from self._delete(file)):
                real = yield from self._resolve_parent(path)
                self._check_removable(real)
                target = self._paths.relative(real)
                if target is None or target == file or not (yield from self._delete(target)):
                    yield from self.stat(path)  # Raises NotFound if the workspace is missing.
                    raise FileNotFoundError(path)

    def _check_removable(self, path: str) -> None:
        if self._paths.is_above_root(path):
            raise ValueError("the root of the workspace and its parents cannot be removed")

    def _resolve_parent(self, path: str) -> Steps[str]:
        """The path of an entry in its real directory; the entry itself may be a link."""
        name = posixpath.basename(path.rstrip("/"))
        if name in {"", ".", ".."}:
            return (yield from self._paths.resolve(path))
        parent = yield from self._paths.resolve(posixpath.dirname(path.rstrip("/")))
        return posixpath.join(parent, name)

    def _delete(self, file: str) -> Steps[bool]:
        """Whether there was something to delete."""
        try:
            yield from steps_of(self._files.commit, [DeleteFile(path=file, recursive=True)])
        except NotFound:
            return False
        self._versions.clear()
        return True

    def realpath(self, path: str) -> Steps[str]:
        """The canonical path; missing components stay as written."""
        with os_errors(path):
            if not path.startswith("/"):
                raise ValueError(f"path must be absolute, got {path!r}")
            return (yield from self._paths.resolve(path))

    def _real_file(self, path: str) -> Steps[str]:
        """The file of a path over links. Raises PermissionError if it is not in the workspace."""
        real = yield from self._paths.resolve(path)
        file = self._paths.relative(real)
        if file is None:
            if self._paths.is_above_root(real):
                raise IsADirectoryError(path)
            raise PermissionError(f"{path!r} is not in the workspace {self._paths.root}")
        return file

    def _remember(self, file: str, etag: str, content_type: str) -> None:
        if len(self._versions) >= _MAX_VERSIONS:
            self._versions.clear()
        self._versions[file] = _SeenVersion(etag, content_type)


@contextmanager
def os_errors(path: str) -> Iterator[None]:
    """Turn refusals into the errors that operating systems have for them."""
    try:
        yield
    except Forbidden as refusal:
        raise PermissionError(refusal.message) from refusal
    except (WorkspaceTooLarge, PayloadTooLarge) as refusal:
        raise OSError(errno.EFBIG, refusal.message, path) from refusal
    except ValidationError as refusal:
        raise ValueError(refusal.message) from refusal


def _content_type(file: str, content: bytes) -> str:
    """By the name; a short text without a known type is one."""
    guessed = guess_type(file)
    if guessed != BYTES_TYPE or len(content) > _TEXT_BYTES or b"\0" in content:
        return guessed
    try:
        content.decode()
    except UnicodeDecodeError:
        return guessed
    return "text/plain"
