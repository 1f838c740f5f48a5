"""Files on this machine's disk: bytes by their digest, and farms of hard links to them."""

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
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Final

from msgspec import Struct

from carrel.adapters.sandbox.local import safe_walk
from carrel.core.identifiers import Digest, Path
from carrel.core.store.tree import Blob
from carrel.ports.sandbox import Fetch, FileKind, InputFile

MOST_FARMS: Final = 32
MOST_BYTES: Final = 2**30
_AT_ONCE: Final = 32 * 2**20
_LONGEST_TARGET: Final = 4095
TICK: Final = 20_000_000
"""Nanoseconds within which two changes may bear the same time."""
_YOUNG: Final = 600.0
"""Seconds for which nothing is let go of, since it may just be on its way into a farm."""


class MaterializedFiles(Struct, frozen=True):
    """Files as a command will find them."""

    files: Mapping[Path, InputFile]
    notes: tuple[str, ...]
    farm: File | None = None


class FileCache:
    """What commands were given, kept for the next. Every file belongs to the sandboxes' user.

    A file with more than one form is kept once for each: hard links share their mode.
    """

    def __init__(
        self, bytes_at: File, farms_at: File, owner: tuple[int, int] | None, most: int = MOST_BYTES
    ) -> None:
        self._bytes, self._farms, self._owner, self._most = bytes_at, farms_at, owner, most
        self._lock = threading.Lock()
        self._known: OrderedDict[str, MaterializedFiles] = OrderedDict()
        self._users: dict[str, int] = {}
        self._written = most  # so that the first look at the disk is at the first write
        bytes_at.mkdir(parents=True, exist_ok=True, mode=0o700)
        farms_at.mkdir(parents=True, exist_ok=True, mode=0o700)

    def missing(self, placed: Collection[InputFile]) -> list[Blob]:
        """What must be fetched: of a link always, since where it points to is kept nowhere."""
        return list(
            {
                each.blob.digest: each.blob
                for each in placed
                if each.form is FileKind.LINK or not _touched(self._place(each))
            }.values()
        )

    def _place(self, placed: InputFile) -> File:
        name = placed.blob.digest.removeprefix("sha256:")
        return self._bytes / (name + ("x" if placed.form is FileKind.EXECUTABLE else ""))

    def keep_all(self, placed: Iterable[InputFile], brought: Mapping[Digest, bytes]) -> None:
        for each in placed:
            self._keep(each, brought[each.blob.digest])

    def _keep(self, placed: InputFile, content: bytes) -> None:
        if not self._place(placed).exists():
            self._store(placed, content)
            self._written += len(content)
            if self._written > self._most // 4:
                self._evict()

    def _store(self, placed: InputFile, content: bytes) -> None:
        fd, half = tempfile.mkstemp(dir=self._bytes, prefix="half-")
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            os.fchmod(fd, 0o755 if placed.form is FileKind.EXECUTABLE else 0o644)
            if self._owner:
                os.fchown(fd, *self._owner)
        os.rename(half, self._place(placed))

    def _evict(self) -> None:
        """Let go of what was not used for longest. Farms keep their own links to it."""
        self._written = 0
        about = [(file, file.stat()) for file in self._bytes.iterdir()]
        over = sum(stat.st_size for _, stat in about) - self._most
        young = time.time() - _YOUNG
        for file, stat in sorted(about, key=lambda each: each[1].st_mtime):
            if over <= 0 or stat.st_mtime > young:
                return
            file.unlink(missing_ok=True)
            over -= stat.st_size

    def held(self, key: str) -> MaterializedFiles | None:
        """A farm that stands, kept until it is let go."""
        with self._lock:
            return self._hold(key) if key in self._known else None

    def hold(
        self, key: str, targets: Mapping[Digest, bytes], laid: MaterializedFiles
    ) -> MaterializedFiles:
        """Build a farm unless it stands, and keep it until it is let go. Raises OSError."""
        with self._lock:
            if key not in self._known:
                self._build(self._farms / key, laid.files, targets)
                self._known[key] = MaterializedFiles(laid.files, laid.notes, self._farms / key)
            return self._hold(key)

    def _hold(self, key: str) -> MaterializedFiles:
        self._known.move_to_end(key)
        self._users[key] = self._users.get(key, 0) + 1
        return self._known[key]

    def let_go(self, key: str) -> None:
        with self._lock:
            self._users[key] -= 1
            self._thin()

    def _thin(self) -> None:
        idle = [key for key in self._known if not self._users.get(key)]
        for key in idle[: max(0, len(self._known) - MOST_FARMS)]:
            del self._known[key]
            self._users.pop(key, None)
            shutil.rmtree(self._farms / key, ignore_errors=True)

    def _build(
        self, place: File, files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
    ) -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o755)
        self._own(place)
        made = {""}
        for path, placed in files.items():
            self._make(place, path.text.rpartition("/")[0], made)
            if placed.form is FileKind.LINK:
                os.symlink(targets[placed.blob.digest], place / path.text)
                self._own(place / path.text)
            else:
                self._link(placed, place / path.text)

    def _link(self, placed: InputFile, place: File) -> None:
        """Another name for bytes; where they have as many as a disk allows, begin anew."""
        try:
            os.link(self._place(placed), place)
        except OSError as problem:
            if problem.errno != errno.EMLINK:
                raise
            self._store(placed, self._place(placed).read_bytes())
            os.link(self._place(placed), place)

    def _make(self, place: File, directory: str, made: set[str]) -> None:
        if directory not in made:
            self._make(place, directory.rpartition("/")[0], made)
            (place / directory).mkdir(mode=0o755)
            self._own(place / directory)
            made.add(directory)

    def _own(self, place: File) -> None:
        if self._owner:
            os.chown(place, *self._owner, follow_symlinks=False)

    def copy(
        self, root: int, files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
    ) -> dict[Path, tuple[int, int, int]]:
        """Fill an empty directory with copies; each is told by the mark that it has then.

        Those of the last moment have none: a change might come within the same tick of the clock.
        """
        for path, placed in files.items():
            self.lay(root, path, placed, targets)
        marks = {}
        old = time.time_ns() - TICK
        for path in files:
            about = os.stat(path.text, dir_fd=root, follow_symlinks=False)
            if about.st_ctime_ns < old:
                marks[path] = (about.st_ino, about.st_ctime_ns, about.st_mtime_ns)
        return marks

    def lay(
        self, root: int, path: Path, placed: InputFile, targets: Mapping[Digest, bytes]
    ) -> None:
        """Put one file where nothing is, by a way without links, or nothing. Raises OSError."""
        for parent in path.parents:
            with (
                suppress(FileExistsError),
                safe_walk.parent_of(root, tuple(parent.text.split("/"))) as above,
            ):
                os.mkdir(parent.name, 0o755, dir_fd=above)
                self._own_at(above, parent.name)
        with safe_walk.parent_of(root, tuple(path.text.split("/"))) as above:
            if placed.form is FileKind.LINK:
                os.symlink(targets[placed.blob.digest], path.name, dir_fd=above)
            else:
                self._copy(above, path.name, placed)
            self._own_at(above, path.name)

    def _copy(self, directory: int, name: str, placed: InputFile) -> None:
        mode = 0o755 if placed.form is FileKind.EXECUTABLE else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with (
            open(self._place(placed), "rb") as source,
            os.fdopen(os.open(name, flags, mode, dir_fd=directory), "wb", 0) as file,
        ):
            try:
                shutil.copyfileobj(source, file, 2**20)
            except OSError:  # a part of a file would be taken for a change
                os.unlink(name, dir_fd=directory)
                raise
            os.fchmod(file.fileno(), mode)

    def _own_at(self, root: int, name: str) -> None:
        if self._owner:
            os.chown(name, *self._owner, dir_fd=root, follow_symlinks=False)


def _touched(place: File) -> bool:
    """Whether it is there; it counts as used now, so that nobody lets go of it."""
    try:
        os.utime(place)
    except FileNotFoundError:
        return False
    return True


def key_of(files: Mapping[Path, InputFile]) -> str:
    named = hashlib.sha256()
    for path, placed in sorted(files.items()):
        named.update(f"{path.text}\0{placed.form}\0{placed.blob.digest}\n".encode())
    return named.hexdigest()


def read_batch_size(
    files: Mapping[Path, InputFile], targets: Mapping[Digest, bytes]
) -> MaterializedFiles:
    """What a disk can hold of these, and notes on the rest."""
    kept: dict[Path, InputFile] = {}
    notes = []
    for path, placed in files.items():
        if any(parent in files for parent in path.parents):
            notes.append(f"not there: {path}, whose directory is a file")
        elif placed.form is FileKind.LINK and not _can_be_target(targets[placed.blob.digest]):
            notes.append(f"not there: {path}, a link that points to nothing that has a name")
        else:
            kept[path] = placed
    return MaterializedFiles(kept, tuple(notes))


def _can_be_target(target: bytes) -> bool:
    return 0 < len(target) <= _LONGEST_TARGET and b"\0" not in target


async def fetched(
    cache: FileCache, files: Mapping[Path, InputFile], fetch: Fetch
) -> dict[Digest, bytes]:
    """Bring what is missing to the disk, some at a time; gives where links point to."""
    wanted = cache.missing(tuple(files.values()))
    by_digest: dict[Digest, list[InputFile]] = {}
    for placed in files.values():
        by_digest.setdefault(placed.blob.digest, []).append(placed)
    targets: dict[Digest, bytes] = {}
    for some in _portions(wanted):
        brought = await fetch(some)
        wanting = [placed for digest in brought for placed in by_digest[digest]]
        index_keys = {each.blob.digest for each in wanting if each.form is FileKind.LINK}
        targets |= {digest: brought[digest] for digest in index_keys}
        files_only = [each for each in wanting if each.form is not FileKind.LINK]
        await asyncio.to_thread(cache.keep_all, files_only, brought)
    return targets


def _portions(blobs: list[Blob]) -> Iterator[list[Blob]]:
    some: list[Blob] = []
    size = 0
    for blob in blobs:
        if some and size + blob.size > _AT_ONCE:
            yield some
            some, size = [], 0
        some.append(blob)
        size += blob.size
    if some:
        yield some
