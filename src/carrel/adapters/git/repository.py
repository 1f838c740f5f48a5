"""One repository as it is written: objects first, names last, a new one beside the old."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any, Final

from dulwich.errors import (
    ChecksumMismatch,
    FileFormatException,
    NotGitRepository,
    ObjectFormatException,
)
from dulwich.file import FileLocked
from dulwich.objects import ObjectID, ShaFile, object_class
from dulwich.refs import Ref
from dulwich.repo import Repo

from carrel.core.errors import NotFound
from carrel.core.git.objects import GitObject

_KEY: Final = "carrel-key"
_PACKED: Final = 64
"""Objects in one go from which on they are written into a pack of their own."""
_LOOSE: Final = 2000
"""Files of single objects from which on they are gathered into a pack."""

_UNREADABLE: Final = (
    *(KeyError, ValueError, zlib.error),
    *(ChecksumMismatch, FileFormatException, ObjectFormatException),
)
"""What is damaged is not there: it will be made again."""

Do = Callable[..., Awaitable[Any]]


class GitRepository:
    def __init__(self, place: File, do: Do) -> None:
        self._place, self._do = place, do
        self._new = place.with_suffix(".new")
        self._repo: Repo | None = None

    async def key(self) -> str | None:
        found: str | None = await self._do(self._read_key)
        return found

    async def refs(self) -> Mapping[str, str]:
        found: Mapping[str, str] = await self._do(self._read_refs)
        return found

    async def read(self, ids: Sequence[str]) -> tuple[GitObject | None, ...]:
        found: tuple[GitObject | None, ...] = await self._do(self._read, tuple(ids))
        return found

    async def begin(self, key: str) -> None:
        await self._do(self._begin, key)

    async def write(self, objects: Sequence[GitObject]) -> None:
        await self._do(self._write, objects)

    async def point(self, refs: Mapping[str, str]) -> None:
        await self._do(self._point, refs)

    async def settle(self) -> None:
        await self._do(self._settle)

    def close(self) -> None:
        if self._repo is not None:
            self._repo.close()
            self._repo = None

    def _open(self) -> Repo:
        if self._repo is None:
            self._repo = opened(self._place)
        return self._repo

    def _read_key(self) -> str | None:
        try:
            self._open()
            return (self._place / _KEY).read_text("utf-8")
        except (NotFound, FileNotFoundError, UnicodeDecodeError):
            return None

    def _read_refs(self) -> Mapping[str, str]:
        refs = self._open().refs.as_dict()
        return {name.decode(): id.decode() for name, id in refs.items() if name != b"HEAD"}

    def _read(self, ids: Sequence[str]) -> tuple[GitObject | None, ...]:
        return tuple(_object(self._open(), id) for id in ids)

    def _begin(self, key: str) -> None:
        self.close()
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(mode=0o700)
        Repo.init_bare(self._new, default_branch=b"main").close()
        (self._new / _KEY).write_text(key, "utf-8")
        self._repo = opened(self._new)

    def _write(self, objects: Sequence[GitObject]) -> None:
        store = self._open().object_store
        new = [_sha_file(one) for one in {each.id: each for each in objects}.values()]
        if len(new) >= _PACKED:
            store.add_objects([(one, None) for one in new])
            return
        for one in new:
            _despite_the_dead(partial(store.add_object, one))
        if store.count_loose_objects() > _LOOSE:
            store.pack_loose_objects()

    def _point(self, refs: Mapping[str, str]) -> None:
        known = self._open().refs
        for name, id in refs.items():
            set_it = partial(known.__setitem__, Ref(name.encode()), ObjectID(id.encode()))
            _despite_the_dead(set_it)

    def _settle(self) -> None:
        """Whoever dies between the two leaves none, and the next one makes it again."""
        self.close()
        old = self._place.with_suffix(".old")
        shutil.rmtree(old, ignore_errors=True)
        if self._place.exists():
            os.rename(self._place, old)
        os.rename(self._new, self._place)
        shutil.rmtree(old, ignore_errors=True)


def opened(place: File) -> Repo:
    """Raises Missing."""
    try:
        repo = Repo(str(place))
    except NotGitRepository:
        raise NotFound("there is no repository") from None
    repo.object_store.fsync_object_files = True
    return repo


def _despite_the_dead(work: Callable[[], None]) -> None:
    """Do it; a lock of git's own that is in the way was left by a process that died."""
    try:
        work()
    except FileLocked as left:
        os.unlink(left.lockfilename)
        work()


def _sha_file(one: GitObject) -> ShaFile:
    kind = object_class(one.kind.encode())
    assert kind is not None
    return ShaFile.from_raw_string(kind.type_num, one.body)


def _object(repo: Repo, id: str) -> GitObject | None:
    try:
        number, body = repo.object_store.get_raw(ObjectID(id.encode()))
    except _UNREADABLE:
        return None
    kind = object_class(number)
    assert kind is not None
    return GitObject(kind.type_name.decode(), id, body)
