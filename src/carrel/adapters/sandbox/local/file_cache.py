"""Cache of file contents by digest, and directories of hard links to them."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path as File
from typing import IO, Final

from msgspec.structs import replace

from carrel.adapters.sandbox.local import safe_walk
from carrel.adapters.sandbox.local.materialized_files import MaterializedFiles, content_only
from carrel.core.identifiers import Digest, Path
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import FileKind, InputFile

MAX_FARMS: Final = 32
MAX_CACHE_BYTES: Final = 2**30
_FETCH_BATCH_BYTES: Final = 8 * 2**20
_LARGE_BYTES: Final = 4 * 2**20
"""Larger contents are fetched in parts."""
CLOCK_TICK_NS: Final = 20_000_000
"""Two changes within this time may have equal timestamps."""
_MIN_AGE_SECONDS: Final = 600.0
"""Younger contents are not evicted, since a link tree may be about to use them."""


class FileCache:
    """Contents and link trees (farms) of earlier commands, owned by the sandbox user.

    Files of a farm are stored for each mode and time, since hard links share them.
    """

    def __init__(
        self,
        contents: File,
        farms: File,
        owner: tuple[int, int] | None,
        max_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        self._contents, self._farms = contents, farms
        self._owner, self._max_bytes = owner, max_bytes
        self._lock = threading.Lock()
        self._farms_by_key: OrderedDict[str, MaterializedFiles] = OrderedDict()
        self._users: dict[str, int] = {}
        self._cleared = contents.with_name("cleared")  # its time: last clearing by any process
        self._cleared_at = self._read_clearing_time()
        self._written = max_bytes  # so that the first write measures the directory
        contents.mkdir(parents=True, exist_ok=True, mode=0o700)
        farms.mkdir(parents=True, exist_ok=True, mode=0o700)

    def find_missing(self, input_files: Collection[InputFile]) -> list[Blob]:
        """Return blobs to fetch. Link targets are never cached and always included."""
        return list(
            {
                input_file.blob.digest: input_file.blob
                for input_file in input_files
                if input_file.kind is FileKind.LINK
                or not _mark_used(self._content_path(input_file), input_file.mtime_ns)
            }.values()
        )

    def _content_path(self, input_file: InputFile) -> File:
        name = input_file.blob.digest.removeprefix("sha256:")
        name += "x" if input_file.kind is FileKind.EXECUTABLE else ""
        if input_file.mtime_ns is not None or input_file.mode is not None:
            name += f"-{input_file.permissions:o}-{input_file.mtime_ns}"
        return self._contents / name

    def store_all(self, input_files: Iterable[InputFile], contents: Mapping[Digest, bytes]) -> None:
        for input_file in input_files:
            self._add(input_file, contents[input_file.blob.digest])

    def _add(self, input_file: InputFile, content: bytes) -> None:
        if not self._content_path(input_file).exists():
            self._store(input_file, content)
            self._count_written(len(content))

    def _count_written(self, size: int) -> None:
        self._written += size
        if self._written > self._max_bytes // 4:
            self._evict()

    def _store(self, input_file: InputFile, content: bytes) -> None:
        with self._open_for_writing(input_file) as file:
            file.write(content)

    @contextmanager
    def _open_for_writing(self, input_file: InputFile) -> Iterator[IO[bytes]]:
        """Yield a file that becomes the content, or nothing on an error."""
        fd, temporary = tempfile.mkstemp(dir=self._contents, prefix="half-")
        try:
            with os.fdopen(fd, "wb") as file:
                yield file
                file.flush()
                if self._owner:
                    os.fchown(fd, *self._owner)
                os.fchmod(fd, input_file.permissions)
                if input_file.mtime_ns is not None:
                    os.utime(fd, ns=(time.time_ns(), input_file.mtime_ns))
            os.rename(temporary, self._content_path(input_file))
        except BaseException:
            File(temporary).unlink(missing_ok=True)
            raise

    async def store_parts(self, input_file: InputFile, parts: AsyncIterator[bytes]) -> None:
        """Store a large content in parts. Raises what the parts raise."""
        if self._content_path(input_file).exists():
            return
        with self._open_for_writing(input_file) as file:
            async for part in parts:
                await asyncio.to_thread(file.write, part)
        await asyncio.to_thread(self._count_written, input_file.blob.size)

    def _evict(self) -> None:
        """Remove the least recently used contents. Farms keep their own links."""
        self._written = 0
        files = [(file, file.stat()) for file in self._contents.iterdir()]
        excess = sum(stat.st_size for _, stat in files) - self._max_bytes
        cutoff = time.time() - _MIN_AGE_SECONDS
        for file, stat in sorted(files, key=lambda item: item[1].st_atime):
            if excess <= 0 or stat.st_atime > cutoff:
                return
            file.unlink(missing_ok=True)
            excess -= stat.st_size

    def clear(self) -> None:
        """Remove all contents and farms; farms in use go when they are released.

        Other processes remove theirs when they next use one.
        """
        for file in self._contents.iterdir():
            file.unlink(missing_ok=True)
        self._cleared.touch(mode=0o600)
        now = time.time_ns()
        os.utime(self._cleared, ns=(now, now))
        with self._lock:
            self._remove_cleared()

    def _read_clearing_time(self) -> int:
        try:
            return self._cleared.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _remove_cleared(self) -> None:
        """Remove unused farms if a process cleared the contents since; keep the time otherwise."""
        cleared_at = self._read_clearing_time()
        if cleared_at == self._cleared_at:
            return
        for key in [key for key in self._farms_by_key if not self._users.get(key)]:
            self._remove_farm(key)
        if not self._farms_by_key:
            self._cleared_at = cleared_at

    def acquire_existing(self, key: str) -> MaterializedFiles | None:
        """Return an existing farm, kept until release, or None."""
        with self._lock:
            self._remove_cleared()
            return self._add_user(key) if key in self._farms_by_key else None

    def acquire(
        self, key: str, targets: Mapping[Digest, bytes], materialized: MaterializedFiles
    ) -> MaterializedFiles:
        """Build the farm unless it exists; kept until release. Raises OSError."""
        with self._lock:
            if key not in self._farms_by_key:
                self._build_farm(self._farms / key, materialized, targets)
                self._farms_by_key[key] = replace(materialized, farm=self._farms / key)
            return self._add_user(key)

    def _add_user(self, key: str) -> MaterializedFiles:
        self._farms_by_key.move_to_end(key)
        self._users[key] = self._users.get(key, 0) + 1
        return self._farms_by_key[key]

    def release(self, key: str) -> None:
        with self._lock:
            self._users[key] -= 1
            self._evict_farms()
            self._remove_cleared()

    def _evict_farms(self) -> None:
        idle = [key for key in self._farms_by_key if not self._users.get(key)]
        for key in idle[: max(0, len(self._farms_by_key) - MAX_FARMS)]:
            self._remove_farm(key)

    def _remove_farm(self, key: str) -> None:
        del self._farms_by_key[key]
        self._users.pop(key, None)
        with suppress(OSError):
            safe_walk.remove_directory(self._farms / key)

    def _build_farm(
        self, farm: File, materialized: MaterializedFiles, targets: Mapping[Digest, bytes]
    ) -> None:
        with suppress(OSError):
            safe_walk.remove_directory(farm)
        farm.mkdir(mode=0o755)
        self._set_owner(farm)
        created, linked = {""}, set[File]()
        for path, input_file in materialized.files.items():
            self._make_directories(farm, path.text.rpartition("/")[0], created)
            if input_file.kind is FileKind.LINK:
                os.symlink(targets[input_file.blob.digest], farm / path.text)
                self._set_owner(farm / path.text)
                _set_time(farm / path.text, input_file.mtime_ns)
            else:
                self._add_content(input_file, farm / path.text, linked)
        for directory in materialized.directories:
            self._make_directories(farm, directory.text, created)
        for path in sorted(materialized.directories, reverse=True):  # the deepest first
            _set_attributes(farm / path.text, materialized.directories[path])

    def _add_content(self, input_file: InputFile, target: File, linked: set[File]) -> None:
        """Hard-link cached content, or copy it for a second path, which is another file."""
        content = self._content_path(input_file)
        if content in linked:
            shutil.copy2(content, target)
            self._set_owner(target)
        else:
            self._link_content(input_file, target)
            linked.add(content)

    def _link_content(self, input_file: InputFile, target: File) -> None:
        """Hard-link cached content; start a new copy when the link limit is reached."""
        try:
            os.link(self._content_path(input_file), target)
        except OSError as problem:
            if problem.errno != errno.EMLINK:
                raise
            with (
                self._content_path(input_file).open("rb") as source,
                self._open_for_writing(input_file) as file,
            ):
                shutil.copyfileobj(source, file, 2**20)
            os.link(self._content_path(input_file), target)

    def _make_directories(self, farm: File, directory: str, created: set[str]) -> None:
        if directory not in created:
            self._make_directories(farm, directory.rpartition("/")[0], created)
            (farm / directory).mkdir(mode=0o755)
            self._set_owner(farm / directory)
            created.add(directory)

    def _set_owner(self, path: File) -> None:
        if self._owner:
            os.chown(path, *self._owner, follow_symlinks=False)

    def copy(
        self, root: int, materialized: MaterializedFiles, targets: Mapping[Digest, bytes]
    ) -> dict[Path, tuple[int, int, int]]:
        """Copy files into an empty directory; return their stamps (inode and times).

        Files of the last clock tick have none, since a change could have the same time.
        """
        files = materialized.files
        for path, input_file in files.items():
            self.place_file(root, path, input_file, targets)
        for path in materialized.directories:
            self.place_directory(root, path)
        for path in sorted(materialized.directories, reverse=True):
            with safe_walk.open_parent(root, tuple(path.text.split("/"))) as parent:
                _set_attributes(path.name, materialized.directories[path], parent)
        stamps = {}
        cutoff = time.time_ns() - CLOCK_TICK_NS
        for path in files:
            status = os.stat(path.text, dir_fd=root, follow_symlinks=False)
            if status.st_ctime_ns < cutoff:
                stamps[path] = (status.st_ino, status.st_ctime_ns, status.st_mtime_ns)
        return stamps

    def place_file(
        self, root: int, path: Path, input_file: InputFile, targets: Mapping[Digest, bytes]
    ) -> None:
        """Create one file without following links, or nothing. Raises OSError."""
        for parent in path.parents:
            self._make_directory(root, parent)
        with safe_walk.open_parent(root, tuple(path.text.split("/"))) as directory:
            if input_file.kind is FileKind.LINK:
                os.symlink(targets[input_file.blob.digest], path.name, dir_fd=directory)
            else:
                self._copy(directory, path.name, input_file)
            self._set_owner_at(directory, path.name)
            _set_time(path.name, input_file.mtime_ns, directory)

    def place_directory(self, root: int, path: Path) -> None:
        """Create a directory unless it exists, without following links. Raises OSError."""
        for directory in (*path.parents, path):
            self._make_directory(root, directory)

    def set_file_attributes(self, root: int, path: Path, input_file: InputFile) -> None:
        """Set mode and time of a file, not of a link's target. Raises OSError."""
        segments = tuple(path.text.split("/"))
        if input_file.kind is not FileKind.LINK:
            safe_walk.set_mode(root, segments, input_file.permissions)
        with safe_walk.open_parent(root, segments) as parent:
            _set_time(path.name, input_file.mtime_ns, parent)

    def set_directory_attributes(self, root: int, path: Path, attributes: FileAttributes) -> None:
        """Set mode and time of a directory that a command may be changing. Raises OSError."""
        segments = tuple(path.text.split("/"))
        safe_walk.set_mode(root, segments, 0o755 if attributes.mode is None else attributes.mode)
        with safe_walk.open_parent(root, segments) as parent:
            _set_time(path.name, attributes.mtime_ns, parent)

    def _make_directory(self, root: int, path: Path) -> None:
        segments = tuple(path.text.split("/"))
        with suppress(FileExistsError), safe_walk.open_parent(root, segments) as parent:
            os.mkdir(path.name, 0o755, dir_fd=parent)
            self._set_owner_at(parent, path.name)

    def _copy(self, directory: int, name: str, input_file: InputFile) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with (
            open(self._content_path(content_only(input_file)), "rb") as source,
            os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb", 0) as file,
        ):
            try:
                shutil.copyfileobj(source, file, 2**20)
            except OSError:  # a partial file would look like a change
                os.unlink(name, dir_fd=directory)
                raise
            os.fchmod(file.fileno(), input_file.permissions)

    def _set_owner_at(self, root: int, name: str) -> None:
        if self._owner:
            os.chown(name, *self._owner, dir_fd=root, follow_symlinks=False)


def _mark_used(path: File, mtime_ns: int | None) -> bool:
    """Set the access time to now. Return whether the file exists."""
    now = time.time_ns()
    try:
        os.utime(path, ns=(now, now if mtime_ns is None else mtime_ns))
    except FileNotFoundError:
        return False
    return True


def _set_time(path: File | str, mtime_ns: int | None, parent: int | None = None) -> None:
    if mtime_ns is not None:
        os.utime(path, ns=(mtime_ns, mtime_ns), dir_fd=parent, follow_symlinks=False)


def _set_attributes(
    path: File | str, attributes: FileAttributes, parent: int | None = None
) -> None:
    """Set mode and time of a directory that nobody else changes."""
    if attributes.mode is not None:
        os.chmod(path, attributes.mode, dir_fd=parent)
    _set_time(path, attributes.mtime_ns, parent)


async def fetch_missing(
    cache: FileCache, files: Mapping[Path, InputFile], blobs: BlobReader
) -> dict[Digest, bytes]:
    """Fetch missing contents, small ones in batches; return the targets of links."""
    missing = cache.find_missing(tuple(files.values()))
    by_digest: dict[Digest, list[InputFile]] = {}
    for input_file in files.values():
        by_digest.setdefault(input_file.blob.digest, []).append(input_file)
    targets: dict[Digest, bytes] = {}
    links = {item.blob.digest for item in files.values() if item.kind is FileKind.LINK}
    large = [blob for blob in missing if blob.size > _LARGE_BYTES and blob.digest not in links]
    for blob in large:
        for input_file in by_digest[blob.digest]:
            await cache.store_parts(input_file, blobs.read_parts(blob))
    for batch in _batches([blob for blob in missing if blob not in large]):
        contents = await blobs.get(batch)
        received = [input_file for digest in contents for input_file in by_digest[digest]]
        targets |= {digest: contents[digest] for digest in links & contents.keys()}
        files_only = [item for item in received if item.kind is not FileKind.LINK]
        await asyncio.to_thread(cache.store_all, files_only, contents)
    return targets


def _batches(blobs: list[Blob]) -> Iterator[list[Blob]]:
    batch: list[Blob] = []
    size = 0
    for blob in blobs:
        if batch and size + blob.size > _FETCH_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(blob)
        size += blob.size
    if batch:
        yield batch
