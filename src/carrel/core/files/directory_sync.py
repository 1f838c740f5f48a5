"""Two-way sync of a directory with an agent's own files: decision per path.

Compares the state at the last sync, the local file and the remote file. No text is lost: a local
text is replaced only if the server has it, a remote one only if it is unchanged since the last
sync. If both changed, both stay until a person resolves the conflict.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final

from msgspec import Struct


class RemoteFile(Struct, frozen=True):
    """A file as shown by the server."""

    digest: str
    is_own: bool = True
    """The agent's own file, not an inherited one."""
    read_only: bool = False
    """Pinned or managed: downloaded, never uploaded."""


class LastSynced(Struct, frozen=True, omit_defaults=True):
    """State of a path at the last sync."""

    here: str | None
    """Local digest; None if a conflict is unresolved."""
    there: str
    """Remote digest; differs from `here` if the server redacted secrets."""
    own: bool = True
    copy: str | None = None
    """File that holds the remote text during a conflict."""


class SyncAction(Enum):
    """Action for one path."""

    NOTHING = "nothing"
    RECORD_SYNCED = "record that both sides are equal"
    DROP_RECORD = "drop the record of a path that is gone"
    UPLOAD = "upload the local file if the remote one is unchanged"
    DOWNLOAD = "download the remote file if the local one is unchanged"
    DELETE_LOCAL = "delete the local file"
    DELETE_REMOTE = "delete the remote file"
    MOVE_LOCAL_ASIDE = "rename the local file, then follow the server"
    START_CONFLICT = "keep both, with the remote text in a copy"
    AWAIT_RESOLUTION = "wait for a person to resolve the conflict"


def decide_action(
    last: LastSynced | None,
    local: str | None,
    remote: RemoteFile | None,
    *,
    copy_exists: bool = False,
) -> SyncAction:
    """Decide the action for a path.

    `copy_exists`: the recorded conflict copy is still there.
    """
    if local is None and (remote is None or not remote.is_own):
        return SyncAction.DROP_RECORD if last else SyncAction.NOTHING
    if remote is not None and local == remote.digest:
        synced = LastSynced(local, remote.digest, remote.is_own)
        return SyncAction.NOTHING if last == synced else SyncAction.RECORD_SYNCED
    if remote is not None and remote.read_only:
        return _decide_read_only(last, local)
    if last is not None and last.copy is not None and copy_exists:
        return _decide_conflict(last, local, remote)
    if local is None:
        return _decide_local_deletion(last, remote)
    return _decide_both_present(last, local, remote)


def _decide_read_only(last: LastSynced | None, local: str | None) -> SyncAction:
    unchanged = last is not None and local == last.here == last.there
    return SyncAction.DOWNLOAD if local is None or unchanged else SyncAction.MOVE_LOCAL_ASIDE


def _decide_conflict(last: LastSynced, local: str | None, remote: RemoteFile | None) -> SyncAction:
    if remote is None or not remote.is_own:
        return SyncAction.UPLOAD
    if local is None:
        return SyncAction.DOWNLOAD
    return SyncAction.AWAIT_RESOLUTION if remote.digest == last.there else SyncAction.START_CONFLICT


def _decide_local_deletion(last: LastSynced | None, remote: RemoteFile | None) -> SyncAction:
    """Deleted locally; but a remote change beats the deletion."""
    unchanged = last is not None and last.own and remote == RemoteFile(last.there)
    return SyncAction.DELETE_REMOTE if unchanged else SyncAction.DOWNLOAD


def _decide_both_present(
    last: LastSynced | None, local: str, remote: RemoteFile | None
) -> SyncAction:
    if last is None:
        return SyncAction.START_CONFLICT if remote and remote.is_own else SyncAction.UPLOAD
    if remote is None or (last.own and not remote.is_own):
        return _decide_remote_deletion(last, local)
    if remote.digest == last.there:
        return SyncAction.NOTHING if local == last.here else SyncAction.UPLOAD
    return SyncAction.DOWNLOAD if local == last.here == last.there else SyncAction.START_CONFLICT


def _decide_remote_deletion(last: LastSynced, local: str) -> SyncAction:
    if local != last.here:
        return SyncAction.UPLOAD
    return SyncAction.DELETE_LOCAL if local == last.there else SyncAction.MOVE_LOCAL_ASIDE


_CONFLICT_COPY: Final = re.compile(r"\.conflict-[0-9a-f]{8,64}(\.[^./]*)?$")
_TEMPORARY_SUFFIXES: Final = ("~", ".swp", ".swo", ".swx", ".tmp", ".part", ".crdownload")
_EDITOR_SUFFIXES: Final = ("___jb_tmp___", "___jb_old___")
_VIM_PROBE: Final = "4913"
"""File that vim creates to test whether the directory is writable."""


def is_ignored(path: str) -> bool:
    """Whether a path is not synced: hidden, temporary, or a conflict copy."""
    return any(map(_is_ignored_name, path.split("/"))) or _CONFLICT_COPY.search(path) is not None


def _is_ignored_name(name: str) -> bool:
    has_ignored_prefix = name.startswith((".", "~$")) or (
        name.startswith("#") and name.endswith("#")
    )
    return (
        has_ignored_prefix
        or name == _VIM_PROBE
        or name.endswith(_TEMPORARY_SUFFIXES + _EDITOR_SUFFIXES)
    )


def conflict_copy_names(path: str, digest: str) -> Iterable[str]:
    """Candidate names of a conflict copy; the first free one is used."""
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    if not stem:
        stem, dot, extension = name, "", ""
    return [
        f"{folder}{slash}{stem}.conflict-{digest[:size]}{dot}{extension}" for size in (8, 16, 64)
    ]


def colliding_paths(paths: Iterable[str], tracked: Collection[str]) -> dict[str, str]:
    """Paths that collide on case-insensitive file systems, with the path they hit.

    Tracked paths take precedence.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths, key=lambda item: (item not in tracked, item)):
        groups[unicodedata.normalize("NFKC", path).casefold()].append(path)
    return {duplicate: first for first, *duplicates in groups.values() for duplicate in duplicates}
