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


class There(Struct, frozen=True):
    """What the server shows at a path."""

    digest: str
    own: bool = True
    """The agent's, and not merely inherited."""
    held: bool = False
    """Pinned or managed: it comes down, and nothing goes up."""


class Known(Struct, frozen=True, omit_defaults=True):
    """What was on both sides when they were last dealt with."""

    here: str | None
    """None where a person has yet to choose."""
    there: str
    """Another than here where the server took secrets out."""
    own: bool = True
    copy: str | None = None
    """The file in which the server's text waits for a person who chooses."""


class Step(Enum):
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
    known: Known | None, here: str | None, there: There | None, *, copy_there: bool = False
) -> Step:
    """What has to be done. ``copy_there``: the copy that is known of has not been taken away."""
    if here is None and (there is None or not there.own):
        return Step.FORGET if known else Step.NOTHING
    if there is not None and here == there.digest:
        same = Known(here, there.digest, there.own)
        return Step.NOTHING if known == same else Step.AGREE
    if there is not None and there.held:
        return _held(known, here)
    if known is not None and known.copy is not None and copy_there:
        return _disputed(known, here, there)
    if here is None:
        return _gone_here(known, there)
    return _both(known, here, there)


def _held(known: Known | None, here: str | None) -> Step:
    seen = known is not None and here == known.here == known.there
    return Step.DOWN if here is None or seen else Step.ASIDE


def _disputed(known: Known, here: str | None, there: There | None) -> Step:
    if there is None or not there.own:
        return Step.UP
    if here is None:
        return Step.DOWN
    return Step.DISPUTED if there.digest == known.there else Step.DISPUTE


def _gone_here(known: Known | None, there: There | None) -> Step:
    """Taken away here; but a change beats a removal."""
    unchanged = known is not None and known.own and there == There(known.there)
    return Step.REMOVE_THERE if unchanged else Step.DOWN


def _both(known: Known | None, here: str, there: There | None) -> Step:
    if known is None:
        return Step.DISPUTE if there and there.own else Step.UP
    if there is None or (known.own and not there.own):
        return _gone_there(known, here)
    if there.digest == known.there:
        return Step.NOTHING if here == known.here else Step.UP
    return Step.DOWN if here == known.here == known.there else Step.DISPUTE


def _gone_there(known: Known, here: str) -> Step:
    if here != known.here:
        return Step.UP
    return Step.REMOVE_HERE if here == known.there else Step.ASIDE


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
