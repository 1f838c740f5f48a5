"""A directory and an agent's own files: what has to be done at a path so that both say the same.

Three things decide: what was known when both were last the same, what is in the directory, and what
is on the server. No text is lost by it. A text in the directory is replaced or removed only if the
server has had it, a text on the server only by somebody who had it in front of them; where both
have changed, both stay until a person has chosen.
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
    """What the server shows at a path."""

    digest: str
    own: bool = True
    """The agent's, and not merely inherited."""
    held: bool = False
    """Pinned or managed: it comes down, and nothing goes up."""


class LastSynced(Struct, frozen=True, omit_defaults=True):
    """What was on both sides when they were last dealt with."""

    here: str | None
    """None where a person has yet to choose."""
    there: str
    """Another than here where the server took secrets out."""
    own: bool = True
    copy: str | None = None
    """The file in which the server's text waits for a person who chooses."""


class SyncAction(Enum):
    """What is to be done at a path."""

    NOTHING = "nothing"
    AGREE = "note that both are the same"
    FORGET = "note that there is nothing any more"
    UP = "put what is here on the server, if that is still as it was seen"
    DOWN = "put what is on the server here, if that is still as it was seen"
    REMOVE_HERE = "remove what is here"
    REMOVE_THERE = "remove what is on the server"
    ASIDE = "keep what is here under another name, and then do as the server does"
    DISPUTE = "leave both, and put the server's beside what is here"
    DISPUTED = "go on waiting for a person to choose"


def decide(
    known: LastSynced | None,
    here: str | None,
    there: RemoteFile | None,
    *,
    copy_there: bool = False,
) -> SyncAction:
    """What has to be done. ``copy_there``: the copy that is known of has not been taken away."""
    if here is None and (there is None or not there.own):
        return SyncAction.FORGET if known else SyncAction.NOTHING
    if there is not None and here == there.digest:
        same = LastSynced(here, there.digest, there.own)
        return SyncAction.NOTHING if known == same else SyncAction.AGREE
    if there is not None and there.held:
        return _held(known, here)
    if known is not None and known.copy is not None and copy_there:
        return _disputed(known, here, there)
    if here is None:
        return _gone_here(known, there)
    return _both(known, here, there)


def _held(known: LastSynced | None, here: str | None) -> SyncAction:
    seen = known is not None and here == known.here == known.there
    return SyncAction.DOWN if here is None or seen else SyncAction.ASIDE


def _disputed(known: LastSynced, here: str | None, there: RemoteFile | None) -> SyncAction:
    if there is None or not there.own:
        return SyncAction.UP
    if here is None:
        return SyncAction.DOWN
    return SyncAction.DISPUTED if there.digest == known.there else SyncAction.DISPUTE


def _gone_here(known: LastSynced | None, there: RemoteFile | None) -> SyncAction:
    """Taken away here; but a change beats a removal."""
    unchanged = known is not None and known.own and there == RemoteFile(known.there)
    return SyncAction.REMOVE_THERE if unchanged else SyncAction.DOWN


def _both(known: LastSynced | None, here: str, there: RemoteFile | None) -> SyncAction:
    if known is None:
        return SyncAction.DISPUTE if there and there.own else SyncAction.UP
    if there is None or (known.own and not there.own):
        return _gone_there(known, here)
    if there.digest == known.there:
        return SyncAction.NOTHING if here == known.here else SyncAction.UP
    return SyncAction.DOWN if here == known.here == known.there else SyncAction.DISPUTE


def _gone_there(known: LastSynced, here: str) -> SyncAction:
    if here != known.here:
        return SyncAction.UP
    return SyncAction.REMOVE_HERE if here == known.there else SyncAction.ASIDE


_COPY: Final = re.compile(r"\.conflict-[0-9a-f]{8,64}(\.[^./]*)?$")
_ENDINGS: Final = ("~", ".swp", ".swo", ".swx", ".tmp", ".part", ".crdownload")
_ENDINGS_OF_EDITORS: Final = ("___jb_tmp___", "___jb_old___")
_PROBE: Final = "4913"
"""What vim makes to see whether it can."""


def is_passed_over(path: str) -> bool:
    """Whether a path is of no concern: hidden, in the making, or a copy of ours."""
    return any(map(_is_passing, path.split("/"))) or _COPY.search(path) is not None


def _is_passing(name: str) -> bool:
    starts = name.startswith((".", "~$")) or (name.startswith("#") and name.endswith("#"))
    return starts or name == _PROBE or name.endswith(_ENDINGS + _ENDINGS_OF_EDITORS)


def copy_names(path: str, digest: str) -> Iterable[str]:
    """Where the text of this digest may stand beside a path: the first that is free."""
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    return [f"{folder}{slash}{stem}.conflict-{digest[:size]}{dot}{ending}" for size in (8, 16, 64)]


def clashing(paths: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Paths that some disks take for one with another, each with that other, which goes first."""
    alike: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths, key=lambda each: (each not in known, each)):
        alike[unicodedata.normalize("NFKC", path).casefold()].append(path)
    return {other: first for first, *others in alike.values() for other in others}
