"""The sync state file: the agent of a directory and the last synced versions."""

from __future__ import annotations

import os
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.cli.sync.directory import STATE_FILE, SyncedDirectory
from carrel.core.files.directory_sync import LastSynced
from carrel_client.errors import UnusableWorkspace
from carrel_client.local_directory.local_files import read_regular

_FORMAT: Final = 1
_RESET_HINT: Final = f"remove {STATE_FILE} to start over; files that differ then become conflicts"


class SyncState(Struct, kw_only=True):
    server: str
    agent: str
    """As given on the command line."""
    id: str = ""
    """The agent's id, if the token may read it; another agent may get its slug later."""
    files: dict[str, LastSynced] = {}
    sending: dict[str, str] = {}
    """Digests of started uploads by path, to recognize them if the response is lost."""
    is_complete: bool = msgspec.field(name="whole", default=False)
    """Whether every file has been processed at least once."""
    format: int = _FORMAT

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def load_state(directory: SyncedDirectory) -> SyncState | None:
    """Load the state of a locked directory. Raises UnusableWorkspace if it is invalid."""
    return _parse_state(directory.read(STATE_FILE), directory.path)


def read_state(directory: str) -> SyncState | None:
    """Read the state of a directory without locking it."""
    return _parse_state(read_regular(os.path.join(directory, STATE_FILE)), directory)


def _parse_state(text: bytes | None, directory: str) -> SyncState | None:
    if text is None:
        return None
    try:
        state = msgspec.json.decode(text, type=SyncState)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UnusableWorkspace(
            f"{directory}/{STATE_FILE} is invalid ({problem}); {_RESET_HINT}"
        ) from None
    if state.format != _FORMAT:
        raise UnusableWorkspace(
            f"{directory}/{STATE_FILE} was written by another version of Carrel; {_RESET_HINT}"
        )
    return state


def resume_state(
    directory: SyncedDirectory, state: SyncState | None, fresh: SyncState
) -> SyncState:
    """Return the state to continue from.

    Raises UnusableWorkspace if the directory is synced with another agent.
    """
    if state is None:
        return fresh
    is_same_agent = (state.server, state.agent) == (fresh.server, fresh.agent)
    if state.id and fresh.id:
        is_same_agent = state.id == fresh.id
    if not is_same_agent:
        raise UnusableWorkspace(
            f"{directory.path} is synced with {state.agent} at {state.server}; {_RESET_HINT}"
        )
    return replace(state, server=fresh.server, agent=fresh.agent, id=fresh.id or state.id)
