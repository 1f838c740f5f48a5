"""Transcripts as JSON Lines files below one directory, for people and programs.

The store is authoritative, so writes are not synced: a file that lost its end is repaired the next
time it is opened.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path as File
from pathlib import PurePath
from typing import Final

from carrel.core.errors import Conflict, ValidationError
from carrel.core.sessions.session import (
    Session,
    complete_lines_length,
    encode_header,
    parse_transcript,
)
from carrel.core.sessions.session_ids import MAX_FILE_NAME_LENGTH, transcript_file_name

CLAIM_FILE: Final = ".carrel-agent"
"""File in each directory that names the agent whose transcripts it holds."""
_LONGEST_NAME: Final = "x" * MAX_FILE_NAME_LENGTH
_MAX_CACHED_FILES: Final = 100_000
_OPEN_FLAGS: Final = (
    os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)


@dataclass(frozen=True, slots=True)
class _FileState:
    size: int
    position: int
    """Number of the last entry in the file."""
    removed: int = 0
    """Removed entries of the session when the file was started."""


class DirectoryTranscriptMirror:
    def __init__(self, root: File) -> None:
        self._root = root
        self._file_states: dict[File, _FileState] = {}
        """States of files that were checked."""

    async def check(self, folder: str) -> None:
        await asyncio.to_thread(self._check, folder)

    async def claim(self, folder: str, owner: str, other_owners: Mapping[str, str]) -> None:
        await asyncio.to_thread(self._claim, folder, owner, other_owners)

    async def find_position(self, folder: str, session: Session, agent: str) -> int:
        return await asyncio.to_thread(self._find_position, folder, session, agent)

    async def append(
        self, folder: str, session: Session, after: int, lines: bytes, last: int
    ) -> None:
        await asyncio.to_thread(self._add, folder, session, after, lines, last)

    async def delete(self, folder: str, owner: str, sessions: Sequence[str]) -> None:
        await asyncio.to_thread(self._remove, folder, owner, sessions)

    def _resolve_directory(self, folder: str) -> File:
        """Return the directory with symlinks resolved. Raises ValidationError."""
        if not folder.strip() or "\0" in folder or ".." in PurePath(folder).parts:
            raise ValidationError("transcriptsDir must be a directory below the transcripts root")
        root = self._root.resolve()
        directory = (root / folder).resolve()
        if not directory.is_relative_to(root):
            raise ValidationError("transcriptsDir is outside the transcripts root")
        return directory

    def _check(self, folder: str) -> None:
        try:
            directory = self._resolve_directory(folder)
            existing = _nearest_existing(directory / _LONGEST_NAME)
            usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
        except (OSError, RuntimeError):  # RuntimeError: a loop of symbolic links
            usable = False
        if not usable:
            raise ValidationError(f"config: transcriptsDir {folder!a} is not a writable directory")

    def _claim(self, folder: str, owner: str, others: Mapping[str, str]) -> None:
        directory = self._resolve_directory(folder)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        current_owner = _owner(directory)
        if current_owner is not None and current_owner != owner and current_owner in others:
            with suppress(ValidationError):
                if self._resolve_directory(others[current_owner]) == directory:
                    raise Conflict("another agent uses this transcripts directory")
        if current_owner != owner:
            temporary = directory / f"{CLAIM_FILE}.new"
            temporary.write_text(f"{owner}\n", "utf-8")
            temporary.replace(directory / CLAIM_FILE)

    def _find_position(self, folder: str, session: Session, agent: str) -> int:
        file = self._resolve_directory(folder) / _file_name(session)
        with _lock_file(file) as (handle, size):
            state = self._file_states.get(file)
            removed = session.last_sequence - session.entry_count
            if state is None or (state.size, state.removed) != (size, removed):
                state = _repair_file(handle, size, session, agent)
                self._cache_state(file, state)
            return state.position

    def _add(self, folder: str, session: Session, after: int, lines: bytes, last: int) -> None:
        file = self._resolve_directory(folder) / _file_name(session)
        with _lock_file(file) as (handle, size):
            state = self._file_states.get(file)
            if state is None or (state.size, state.position) != (size, after):
                raise OSError(f"{file.name} was changed by another process")
            _write_all(handle, lines)
            self._cache_state(file, _FileState(size + len(lines), last, state.removed))

    def _remove(self, folder: str, owner: str, sessions: Sequence[str]) -> None:
        directory = self._resolve_directory(folder)
        if _owner(directory) != owner:
            return
        for file in (directory / transcript_file_name(id) for id in sessions):
            self._file_states.pop(file, None)
            with suppress(FileNotFoundError):
                os.unlink(file)

    def _cache_state(self, file: File, state: _FileState) -> None:
        if len(self._file_states) >= _MAX_CACHED_FILES:
            self._file_states.clear()
        self._file_states[file] = state


def _nearest_existing(file: File) -> File:
    """Return the file or its nearest parent that exists. Raises OSError, also for long names."""
    for candidate in (file, *file.parents):
        with suppress(FileNotFoundError):
            candidate.stat()
            return candidate
    raise FileNotFoundError(file)


def _file_name(session: Session) -> str:
    return transcript_file_name(session.id)


def _owner(directory: File) -> str | None:
    try:
        return (directory / CLAIM_FILE).read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _lock_file(file: File) -> Iterator[tuple[int, int]]:
    """Open or create a file under an exclusive lock; yield descriptor and size."""
    handle = os.open(file, _OPEN_FLAGS, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle, os.fstat(handle).st_size
    finally:
        os.close(handle)


def _repair_file(handle: int, size: int, session: Session, agent: str) -> _FileState:
    """Truncate a torn last line and check the header; return the state of the file.

    A file that does not match the session's entries is started again, and one whose session lost
    entries. Raises Conflict if the file belongs to another session.
    """
    content = os.pread(handle, size, 0)
    valid = content[: complete_lines_length(content)]
    transcript = parse_transcript(valid)
    if valid and (transcript.header is None or transcript.header.id != session.id):
        raise Conflict(f"{_file_name(session)} belongs to another session")
    removed = session.last_sequence - session.entry_count
    if transcript.skipped or removed or len(transcript.entries) > session.entry_count:
        valid, transcript = b"", parse_transcript(b"")
    if len(valid) < size:
        os.ftruncate(handle, len(valid))
    if valid:
        return _FileState(len(valid), len(transcript.entries))
    header = encode_header(session, agent)
    _write_all(handle, header)
    return _FileState(len(header), 0, removed)


def _write_all(handle: int, content: bytes) -> None:
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]
