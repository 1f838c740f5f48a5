"""Keys of any text as paths of files, and back: the one place where keys are encoded."""

from __future__ import annotations

from typing import Final

from carrel_client.runtimes.path_segments import from_segment, to_segment

_DOTS: Final = frozenset({".", ".."})


def name_to_segment(name: str) -> str:
    """A segment from which ``segment_to_name`` restores a name; dots within it stay.

    Raises ValueError if it is too long for a path, or not Unicode.
    """
    return to_segment(name) if name in _DOTS else to_segment(name).replace("%2E", ".")


def segment_to_name(segment: str) -> str:
    return from_segment(segment)


def key_to_path(key: str) -> str:
    """A path from which ``path_to_key`` restores a key; its slashes separate directories.

    Raises ValueError if a segment is too long, or not Unicode.
    """
    return "/".join(map(name_to_segment, key.split("/")))


def path_to_key(path: str) -> str:
    return "/".join(map(segment_to_name, path.split("/")))


def directory_of_prefix(prefix: str) -> str:
    """The path of the directory, with its slash, that has all keys with a prefix."""
    directory, slash, _ = prefix.rpartition("/")
    return key_to_path(directory) + slash if slash else ""
