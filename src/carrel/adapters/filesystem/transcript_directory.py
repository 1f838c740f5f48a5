"""Transcripts as files of lines beneath one directory, for people and programs that read files.

The store knows everything that stands in them, so nothing here is waited for to reach the disk: a
file that lost its end is mended the next time it is looked at.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as File
from pathlib import PurePath
from typing import Final

from carrel.core.errors import Conflict, ValidationError
from carrel.core.sessions import Session, heading, read, whole

CLAIM: Final = ".carrel-agent"
"""Says, in each directory, whose transcripts it holds."""
_MOST_KNOWN: Final = 100_000
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DirectoryTranscriptMirror:
    def __init__(self, root: File) -> None:
        self._root = root
        self._known: dict[File, tuple[int, int]] = {}
        """Of files that were looked at: their size, and how many entries they have."""

    async def claim(self, folder: str, owner: str, others: Mapping[str, str]) -> None:
        await asyncio.to_thread(self._claim, folder, owner, others)

    async def held(self, folder: str, session: Session, agent: str) -> int:
        return await asyncio.to_thread(self._held, folder, session, agent)

    async def add(
        self, folder: str, session: Session, after: int, lines: bytes, count: int
    ) -> None:
        await asyncio.to_thread(self._add, folder, session, after, lines, count)

    async def remove(self, folder: str, owner: str, sessions: Sequence[Session]) -> None:
        await asyncio.to_thread(self._remove, folder, owner, sessions)

    def _place(self, folder: str) -> File:
        """The directory itself, by whichever links one comes to it. Raises Malformed."""
        if not folder.strip() or "\0" in folder or ".." in PurePath(folder).parts:
            raise ValidationError(
                "transcriptsDir must be a directory beneath the root of transcripts"
            )
        root = self._root.resolve()
        place = (root / folder).resolve()
        if not place.is_relative_to(root):
            raise ValidationError("transcriptsDir is outside of the root of transcripts")
        return place

    def _claim(self, folder: str, owner: str, others: Mapping[str, str]) -> None:
        place = self._place(folder)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        whose = _owner(place)
        if whose is not None and whose != owner and whose in others:
            with suppress(ValidationError):
                if self._place(others[whose]) == place:
                    raise Conflict("another agent keeps its transcripts in that directory")
        if whose != owner:
            aside = place / f"{CLAIM}.new"
            aside.write_text(f"{owner}\n", "utf-8")
            aside.replace(place / CLAIM)

    def _held(self, folder: str, session: Session, agent: str) -> int:
        file = self._place(folder) / _name(session)
        with _locked(file) as (handle, size):
            known = self._known.get(file)
            if known is None or known[0] != size:
                known = _mended(handle, size, session, agent)
                self._note(file, *known)
            return known[1]

    def _add(self, folder: str, session: Session, after: int, lines: bytes, count: int) -> None:
        file = self._place(folder) / _name(session)
        with _locked(file) as (handle, size):
            if self._known.get(file) != (size, after):
                raise OSError(f"{file.name} was changed by somebody else")
            _write(handle, lines)
            self._note(file, size + len(lines), after + count)

    def _remove(self, folder: str, owner: str, sessions: Sequence[Session]) -> None:
        place = self._place(folder)
        if _owner(place) != owner:
            return
        for session in sessions:
            self._known.pop(place / _name(session), None)
            with suppress(FileNotFoundError):
                os.unlink(place / _name(session))

    def _note(self, file: File, size: int, count: int) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[file] = (size, count)


def _name(session: Session) -> str:
    return f"{session.id}.jsonl"


def _owner(place: File) -> str | None:
    try:
        return (place / CLAIM).read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _locked(file: File) -> Iterator[tuple[int, int]]:
    """A file that nobody else adds to meanwhile, made if it is not there, and its size."""
    handle = os.open(file, _OPEN, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle, os.fstat(handle).st_size
    finally:
        os.close(handle)


def _mended(handle: int, size: int, session: Session, agent: str) -> tuple[int, int]:
    """Cut off a torn line, and see that the file begins as it should; its size and its entries.

    Raises Taken where the file is somebody else's.
    """
    content = os.pread(handle, size, 0)
    sound = content[: whole(content)]
    found = read(sound)
    if sound and (found.heading is None or found.heading.id != session.id):
        raise Conflict(f"{_name(session)} holds something else")
    if found.skipped or len(found.utterances) > session.entries:
        sound, found = b"", read(b"")
    if len(sound) < size:
        os.ftruncate(handle, len(sound))
    if sound:
        return len(sound), len(found.utterances)
    header = heading(session, agent)
    _write(handle, header)
    return len(header), 0


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
