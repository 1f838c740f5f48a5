"""What is noted in a synced directory: which agent it is kept with, and what both sides had."""

from __future__ import annotations

import os
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.cli.sync.directory import STATE, SyncedDirectory
from carrel.core.files.directory_sync import LastSynced
from carrel_client.errors import UnusableWorkspace
from carrel_client.local_files import read_regular

_FORMAT: Final = 1
_ANEW: Final = f"remove {STATE} to begin anew: what differs will then be a conflict"


class SyncState(Struct, kw_only=True):
    server: str
    agent: str
    """As it was named."""
    id: str = ""
    """The agent's, where the token may know it: another may come to have its slug."""
    files: dict[str, LastSynced] = {}
    sending: dict[str, str] = {}
    """What is on its way up, by path: if its answer is lost, it is known again by its digest."""
    whole: bool = False
    """Whether every file has been dealt with at least once."""
    format: int = _FORMAT

    def encoded(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def load_state(folder: SyncedDirectory) -> SyncState | None:
    """Raises Unfit for what is none of ours."""
    return _parsed(folder.read(STATE), folder.path)


def noted_at(directory: str) -> SyncState | None:
    """The same of a directory that somebody else may be holding."""
    return _parsed(read_regular(os.path.join(directory, STATE)), directory)


def _parsed(text: bytes | None, directory: str) -> SyncState | None:
    if text is None:
        return None
    try:
        note = msgspec.json.decode(text, type=SyncState)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UnusableWorkspace(
            f"{directory}/{STATE} cannot be understood ({problem}); {_ANEW}"
        ) from None
    if note.format != _FORMAT:
        raise UnusableWorkspace(f"{directory}/{STATE} is of another version of Carrel; {_ANEW}")
    return note


def same(folder: SyncedDirectory, note: SyncState | None, fresh: SyncState) -> SyncState:
    """What is to go on from. Raises Unfit where the directory is kept with another agent."""
    if note is None:
        return fresh
    known = (note.server, note.agent) == (fresh.server, fresh.agent)
    if note.id and fresh.id:
        known = note.id == fresh.id
    if not known:
        raise UnusableWorkspace(
            f"{folder.path} is kept with {note.agent} at {note.server}; {_ANEW}"
        )
    return replace(note, server=fresh.server, agent=fresh.agent, id=fresh.id or note.id)
