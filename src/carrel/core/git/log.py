"""From what a scope said to git commits: one for each of its revisions, the same wherever made.

A commit says nothing that could be another tomorrow: who wrote is an id, not a name or an address
that people change, and times are to the second in UTC.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from carrel.core.git.objects import GitObject, Signature, commit, tag
from carrel.core.identifiers import Path, TimestampMs
from carrel.core.store.tree import Version

REVISION: Final = "Carrel-Revision"
RUN: Final = "Carrel-Run"
PRUNED: Final = "What was before this has been pruned."
_COMMITTER: Final = "Carrel <carrel@carrel.invalid>"
_CONTROL: Final = re.compile(r"[^\n\t\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f]")
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9._+@-]+")
_ACTED_ON: Final = frozenset({".git", ".gitmodules", ".gitattributes"})
_SHORT: Final = re.compile(r"g[a-z0-9]*~[0-9]+")
_TAG: Final = "checkpoint/"


class StoreCommit(Struct, frozen=True):
    """All that one commit of the store said in a scope."""

    versions: tuple[Version, ...]

    @property
    def revision(self) -> int:
        return self.versions[0].head.revision


class Checkpoint(Struct, frozen=True):
    """A revision that somebody wanted to find again, and why."""

    revision: int
    at: TimestampMs
    by: str
    note: str

    @property
    def name(self) -> str:
        """What its tag is called."""
        return f"{_TAG}{self.revision}"

    @property
    def subject(self) -> str:
        return f"checkpoint: {self.note}"


def revisions(versions: Iterable[Version]) -> Iterator[StoreCommit]:
    """Versions in order of revision, by the commits that they came with."""
    for _, some in groupby(versions, key=lambda version: version.head.revision):
        yield StoreCommit(tuple(some))


def commit_of(
    said: StoreCommit, tree: str, parent: str | None, redact: Callable[[str], str], *, pruned: bool
) -> GitObject:
    """The git commit of one revision; it tells if what was before is not known any more."""
    first = said.versions[0]
    at = first.head.at
    message = _message(said, redact(first.why), pruned=pruned)
    parents = () if parent is None else (parent,)
    author = Signature(who(first.by), at)
    return commit(tree, parents, author, Signature(_COMMITTER, at), message)


def tag_of(checkpoint: Checkpoint, commit: str, redact: Callable[[str], str]) -> GitObject:
    signed = Signature(who(checkpoint.by), checkpoint.at)
    text = _plain(redact(checkpoint.subject)).strip() + "\n"
    return tag(commit, checkpoint.name, signed, text.encode("utf-8", "replace"))


def revision_of(message: str) -> int | None:
    """The revision that a commit of ours is about: what its last line says."""
    name, _, number = message.rstrip("\n").rpartition("\n")[2].partition(": ")
    return int(number) if name == REVISION and number.isascii() and number.isdigit() else None


def who(author: str) -> str:
    """An id as git has names and addresses; the domain is one that nobody can ever have."""
    name = _UNNAMEABLE.sub("-", author).strip("-.") or "unknown"
    return f"{name} <{name}@carrel.invalid>"


def holdable(path: Path) -> bool:
    """Whether git may hold it: a clone must not be given what git itself would act on.

    Nor what some disk takes for that: in other letter case, with characters that it passes over,
    with dots and blanks at the end, or by its short name.
    """
    return not any(_acted_on(segment) for segment in path.text.split("/"))


def _acted_on(segment: str) -> bool:
    seen = "".join(c for c in segment if unicodedata.category(c) != "Cf").casefold()
    seen = seen.partition(":")[0].rstrip(". ")
    return seen in _ACTED_ON or _SHORT.fullmatch(seen) is not None


def _message(said: StoreCommit, reason: str, *, pruned: bool) -> bytes:
    subject, _, rest = _plain(reason).strip().partition("\n")
    parts = [subject.rstrip() or "change files", rest.strip(), PRUNED if pruned else ""]
    run = said.versions[0].run
    trailers = [f"{RUN}: {_plain(run)}"] if run else []
    trailers.append(f"{REVISION}: {said.revision}")
    text = "\n\n".join([part for part in parts if part] + ["\n".join(trailers)])
    return (text + "\n").encode("utf-8", "replace")


def _plain(text: str) -> str:
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))
