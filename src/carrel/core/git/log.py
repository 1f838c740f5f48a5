"""Git commits and tags for the revisions of a scope.

A commit is a function of the store's log: the author is an id, not a name or address, and times are
whole seconds in UTC. So its id is the same wherever it is built.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.store.entry import Version

REVISION_TRAILER: Final = "Carrel-Revision"
RUN_TRAILER: Final = "Carrel-Run"
PRUNED_NOTE: Final = "Earlier history has been pruned."
COMMITTER: Final = "Carrel <carrel@carrel.invalid>"
_CONTROL: Final = re.compile(r"[^\n\t\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f]")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._+@-]+")
_GIT_FILES: Final = frozenset({".git", ".gitmodules", ".gitattributes"})
_SHORT_NAME: Final = re.compile(r"g[a-z0-9]*~[0-9]+")


class StoreCommit(Struct, frozen=True):
    """All versions that one commit of the store wrote in a scope."""

    versions: tuple[Version, ...]

    @property
    def revision(self) -> int:
        return self.versions[0].head.revision


class Checkpoint(Struct, frozen=True, rename={"author": "by"}):
    """A revision with a note; a tag in git."""

    revision: int
    at: TimestampMs
    author: str
    note: str

    @property
    def name(self) -> str:
        """The name of its tag."""
        return f"checkpoint/{self.revision}"

    @property
    def subject(self) -> str:
        return f"checkpoint: {self.note}"


class CommitDraft(Struct, frozen=True):
    """A git commit without its tree and parent."""

    author: str
    """A name and an address: ``name <address>``."""
    at: TimestampMs
    message: bytes


class TagDraft(Struct, frozen=True):
    """An annotated git tag without the commit it points to."""

    name: str
    tagger: str
    """A name and an address: ``name <address>``."""
    at: TimestampMs
    message: bytes


class GitCommit(Struct, frozen=True):
    """A commit as read from a repository."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    seconds: int
    message: str

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def body(self) -> str:
        return self.message.partition("\n")[2].strip("\n")


def group_by_revision(versions: Iterable[Version]) -> Iterator[StoreCommit]:
    """Group versions, which are in order of revision, by their commit."""
    for _, group in groupby(versions, key=lambda version: version.head.revision):
        yield StoreCommit(tuple(group))


def draft_commit(
    commit: StoreCommit, redact: Callable[[str], str], *, pruned: bool = False
) -> CommitDraft:
    """Return the git commit of one revision.

    ``pruned`` adds a note that older versions were deleted.
    """
    first = commit.versions[0]
    message = _commit_message(commit, redact(first.reason), pruned=pruned)
    return CommitDraft(git_author(first.author), first.head.at, message)


def draft_tag(checkpoint: Checkpoint, redact: Callable[[str], str]) -> TagDraft:
    text = _printable(redact(checkpoint.subject)).strip() + "\n"
    message = text.encode("utf-8", "replace")
    return TagDraft(checkpoint.name, git_author(checkpoint.author), checkpoint.at, message)


def parse_revision(message: str) -> int | None:
    """Return the revision that the last line of a commit message names."""
    name, _, number = message.rstrip("\n").rpartition("\n")[2].partition(": ")
    return (
        int(number) if name == REVISION_TRAILER and number.isascii() and number.isdigit() else None
    )


def git_author(id: str) -> str:
    """Return an id as a name and an address at a domain that cannot be registered."""
    name = _NOT_IN_NAMES.sub("-", id).strip("-.") or "unknown"
    return f"{name} <{name}@carrel.invalid>"


def can_hold(path: Path) -> bool:
    """Whether a repository may contain a path: not if git itself would act on it.

    Also rejects names that some file system treats as such a path: other letter case, invisible
    characters, trailing dots or blanks, or a DOS short name.
    """
    return not any(_is_git_file(segment) for segment in path.text.split("/"))


def _is_git_file(segment: str) -> bool:
    visible = "".join(c for c in segment if unicodedata.category(c) != "Cf").casefold()
    name = visible.partition(":")[0].rstrip(". ")
    return name in _GIT_FILES or _SHORT_NAME.fullmatch(name) is not None


def _commit_message(commit: StoreCommit, reason: str, *, pruned: bool) -> bytes:
    subject, _, body = _printable(reason).strip().partition("\n")
    parts = [subject.rstrip() or "change files", body.strip(), PRUNED_NOTE if pruned else ""]
    run = commit.versions[0].run
    trailers = [f"{RUN_TRAILER}: {_printable(run)}"] if run else []
    trailers.append(f"{REVISION_TRAILER}: {commit.revision}")
    text = "\n\n".join([part for part in parts if part] + ["\n".join(trailers)])
    return (text + "\n").encode("utf-8", "replace")


def _printable(text: str) -> str:
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))
