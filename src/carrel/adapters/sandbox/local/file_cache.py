"""Cache of file contents by digest, and directories of hard links to them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
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

from msgspec import Struct

from carrel.adapters.sandbox.local import safe_walk
from carrel.core.identifiers import Digest, Path
from carrel.core.store.blob import Blob
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import FileKind, InputFile

MAX_FARMS: Final = 32
MAX_CACHE_BYTES: Final = 2**30
_FETCH_BATCH_BYTES: Final = 8 * 2**20
_LARGE_BYTES: Final = 4 * 2**20
"""Larger contents are fetched in parts."""
_MAX_TARGET_BYTES: Final = 4095
CLOCK_TICK_NS: Final = 20_000_000
"""Two changes within this time may have equal timestamps."""
_MIN_AGE_SECONDS: Final = 600.0
"""Younger contents are not evicted, since a link tree may be about to use them."""


class MaterializedFiles(Struct, frozen=True):
    """Files that a command will find, with notes on those that are unsupported."""

    files: Mapping[Path, InputFile]
    notes: tuple[str, ...]
    farm: File | None = None


class FileCache:
    """Contents and link trees (farms) of earlier commands, owned by the sandbox user.

    Executable and plain files are stored separately, since hard links share their mode.
    """

    def __init__(
        self,
        contents: File,
        farms: File,
        owner: tuple[int, int] | None,
        max_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        self._contents, self._farms, self._owner, self._max_bytes = (
            contents,
            farms,
            owner,
            max_bytes,
        )
        self._lock = threading.Lock()
        self._farms_by_key: OrderedDict[str, MaterializedFiles] = OrderedDict()
        self._users: dict[str, int] = {}
        self._written = max_bytes  # so that the first write measures the directory
        contents.mkdir(parents=True, exist_ok=True, mode=0o700)
        farms.mkdir(parents=True, exist_ok=True, mode=0o700)

    def missing(self, input_files: Collection[InputFile]) -> list[Blob]:
        """Return blobs to fetch. Link targets are never cached and always included."""
        return list(
            {
                input_file.blob.digest: input_file.blob
                for input_file in input_files
                if input_file.kind is FileKind.LINK or not _touch(self._content_path(input_file))
            }.values()
        )

    def _content_path(self, input_file: InputFile) -> File:
        name = input_file.blob.digest.removeprefix("sha256:")
        return self._contents / (name + ("x" if input_file.kind is FileKind.EXECUTABLE else ""))

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
        with self._writing(input_file) as file:
            file.write(content)

    @contextmanager
    def _writing(self, input_file: InputFile) -> Iterator[IO[bytes]]:
        """Yield a file that becomes the content, or nothing on an error."""
        fd, temporary = tempfile.mkstemp(dir=self._contents, prefix="half-")
        try:
            with os.fdopen(fd, "wb") as file:
                yield file
                os.fchmod(fd, 0o755 if input_file.kind is FileKind.EXECUTABLE else 0o644)
                if self._owner:
                    os.fchown(fd, *self._owner)
            os.rename(temporary, self._content_path(input_file))
        except BaseException:
            File(temporary).unlink(missing_ok=True)
            raise

    async def store_parts(self, input_file: InputFile, parts: AsyncIterator[bytes]) -> None:
        """Store a large content in parts. Raises what the parts raise."""
        if self._content_path(input_file).exists():
            return
        with self._writing(input_file) as file:
            async for part in parts:
                await asyncio.to_thread(file.write, part)
        await asyncio.to_thread(self._count_written, input_file.blob.size)

    def _evict(self) -> None:
        """Remove the least recently used contents. Farms keep their own links."""
        self._written = 0
        files = [(file, file.stat()) for file in self._contents.iterdir()]
        excess = sum(stat.st_size for _, stat in files) - self._max_bytes
        cutoff = time.time() - _MIN_AGE_SECONDS
        for file, stat in sorted(files, key=lambda item: item[1].st_mtime):
            if excess <= 0 or stat.st_mtime > cutoff:
                return
            file.unlink(missing_ok=True)
            excess -= stat.st_size

    def acquire_existing(self, key: str) -> MaterializedFiles | None:
        """Return an existing farm, kept until release, or None."""
        with self._lock:
            return self._add_user(key) if key in self._farms_by_key else None

    def acquire(
        self, key: str, targets: Mapping[Digest, bytes], materialized: MaterializedFiles
    ) -> MaterializedFiles:
        """Build the farm unless it exists; kept until release. Raises OSError."""
        with self._lock:
            if key not in self._farms_by_key:
                self._build_farm(self._farms / key, materialized.files, targets)
                self._farms_by_key[key] = MaterializedFiles(
                    materialized.files, materialized.notes, self._farms / key
                )
            return self._add_user(key)

    def _add_user(self, key: str) -> MaterializedFiles:
        self._farms_by_key.move_to_end(key)
        self._users[key] = self._users.get(key, 0) + 1
        return self._farms_by_key[key]

    def release(self, key: str) -> None:
        with self._lock:
            self._users[key] -= 1
            self._evict_farms()

    def _evict_farms(self) -> None:
        idle = [key for key in self._farms_by_key if not self._users.get(key)]
        for key in idle[: max(0, len(self._farms_by_key) - MAX_FARMS)]:
            del self._farms_by_key[key]
            self._users.pop(key, None)
            shutil.rmtree(self._farms / key, ignore_errors=True)

    def _build_farm(
        self, farm: File, files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
    ) -> None:
        shutil.rmtree(farm, ignore_errors=True)
        farm.mkdir(mode=0o755)
        self._set_owner(farm)
        created = {""}
        for path, input_file in files.items():
            self._make_directories(farm, path.text.rpartition("/")[0], created)
            if input_file.kind is FileKind.LINK:
                os.symlink(targets[input_file.blob.digest], farm / path.text)
                self._set_owner(farm / path.text)
            else:
                self._link_content(input_file, farm / path.text)

    def _link_content(self, input_file: InputFile, target: File) -> None:
        """Hard-link cached content; start a new copy when the link limit is reached."""
        try:
            os.link(self._content_path(input_file), target)
        except OSError as problem:
            if problem.errno != errno.EMLINK:
                raise
            with (
                self._content_path(input_file).open("rb") as source,
                self._writing(input_file) as file,
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
        self, root: int, files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
    ) -> dict[Path, tuple[int, int, int]]:
        """Copy files into an empty directory; return their stamps (inode and times).

        Files of the last clock tick have none, since a change could have the same time.
        """
        for path, input_file in files.items():
            self.place_file(root, path, input_file, targets)
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
            with (
                suppress(FileExistsError),
                safe_walk.open_parent(root, tuple(parent.text.split("/"))) as directory,
            ):
                os.mkdir(parent.name, 0o755, dir_fd=directory)
                self._set_owner_at(directory, parent.name)
        with safe_walk.open_parent(root, tuple(path.text.split("/"))) as directory:
            if input_file.kind is FileKind.LINK:
                os.symlink(targets[input_file.blob.digest], path.name, dir_fd=directory)
            else:
                self._copy(directory, path.name, input_file)
            self._set_owner_at(directory, path.name)

    def _copy(self, directory: int, name: str, input_file: InputFile) -> None:
        mode = 0o755 if input_file.kind is FileKind.EXECUTABLE else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with (
            open(self._content_path(input_file), "rb") as source,
            os.fdopen(os.open(name, flags, mode, dir_fd=directory), "wb", 0) as file,
        ):
            try:
                shutil.copyfileobj(source, file, 2**20)
            except OSError:  # a partial file would look like a change
                os.unlink(name, dir_fd=directory)
                raise
            os.fchmod(file.fileno(), mode)

    def _set_owner_at(self, root: int, name: str) -> None:
        if self._owner:
            os.chown(name, *self._owner, dir_fd=root, follow_symlinks=False)


def _touch(path: File) -> bool:
    """Set the modification time to now. Return whether the file exists."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def files_key(files: Mapping[Path, InputFile]) -> str:
    hasher = hashlib.sha256()
    for path, input_file in sorted(files.items()):
        hasher.update(f"{path.text}\0{input_file.kind}\0{input_file.blob.digest}\n".encode())
    return hasher.hexdigest()


def supported_files(
    files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
) -> MaterializedFiles:
    """Return the files a disk can hold, with notes on the rest."""
    supported: dict[Path, InputFile] = {}
    notes = []
    for path, input_file in files.items():
        if any(parent in files for parent in path.parents):
            notes.append(f"missing: {path}, its directory is a file")
        elif input_file.kind is FileKind.LINK and not _is_valid_target(
            targets[input_file.blob.digest]
        ):
            notes.append(f"missing: {path}, an invalid symlink target")
        else:
            supported[path] = input_file
    return MaterializedFiles(supported, tuple(notes))


def _is_valid_target(target: bytes) -> bool:
    return 0 < len(target) <= _MAX_TARGET_BYTES and b"\0" not in target


async def fetch_missing(
    cache: FileCache, files: Mapping[Path, InputFile], blobs: BlobReader
) -> dict[Digest, bytes]:
    """Fetch missing contents, small ones in batches; return the targets of links."""
    missing = cache.missing(tuple(files.values()))
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
