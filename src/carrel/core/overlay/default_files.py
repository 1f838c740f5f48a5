"""How packaged files are merged into a tenant's defaults: three ways, and never over an edit.

Compared are what we package, what we last wrote, and what stands there now. A file that is still
what we wrote follows; everything else belongs to the operator, who is only told of what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from carrel.core.identifiers import Digest, Path


class PackagedFile(Struct, frozen=True):
    version: int
    """From 1, rising whenever a file changes, so that an older program undoes nothing."""
    files: Mapping[Path, Digest]


class SeedState(Struct, frozen=True):
    """What a tenant's defaults have had from us; as it is made, nothing yet."""

    version: int = 0
    files: Mapping[Path, Digest | None] = {}
    """What we last wrote at a path, or the operator has reviewed since; None where a file of the
    operator's own was there before ours."""


class UpdateFile(Struct, frozen=True):
    """To be written: it is new, or still exactly what we wrote before."""

    path: Path
    digest: Digest


class KeptByOperator(Struct, frozen=True):
    """The operator's own text stays; ``offered`` is ours, if it has moved on since."""

    path: Path
    offered: Digest | None


class CurrentFile(Struct, frozen=True):
    path: Path


class DeletedByOperator(Struct, frozen=True):
    """Deleted by the operator, and stays so; ``offered`` can be had, None if packaged no more."""

    path: Path
    offered: Digest | None


class RetiredFile(Struct, frozen=True):
    """Packaged no more: removed if it is still what we wrote, else the operator's own from now."""

    path: Path
    removed: bool


Outcome = UpdateFile | KeptByOperator | CurrentFile | DeletedByOperator | RetiredFile


class DefaultFileState(StrEnum):
    """How a file stands to the one that is packaged."""

    CURRENT = "current"
    NEW = "new"
    BEHIND = "behind"
    EDITED = "edited"
    DELETED = "deleted"
    RETIRED = "retired"


class DefaultsPlan(Struct, frozen=True):
    outcomes: tuple[Outcome, ...]
    """One for each path that is packaged or was, sorted by path."""
    seeded: SeedState
    """What is to be remembered, in the same commit."""
    absent: frozenset[Path] = frozenset()

    @property
    def states(self) -> Mapping[Path, DefaultFileState]:
        return {outcome.path: _state(outcome, self.absent) for outcome in self.outcomes}

    @property
    def writes(self) -> Mapping[Path, Digest | None]:
        """What is to change: the content of a path, or None to remove it."""
        return dict(_changes(self.outcomes))

    @property
    def offers(self) -> Mapping[Path, Digest]:
        """What the operator may take, and gets only by asking for it."""
        return dict(_offers(self.outcomes))


def plan(
    packaged: PackagedFile, seeded: SeedState, held: Mapping[Path, Digest | None]
) -> DefaultsPlan:
    """What becomes of each path; one that ``held`` says nothing of, or None, is not there."""
    if packaged.version < seeded.version:
        return DefaultsPlan((), seeded)
    known = sorted({*packaged.files, *seeded.files})
    outcomes = tuple(_outcome(path, packaged, seeded, held.get(path)) for path in known)
    after = {path: digest for one in outcomes for path, digest in _memory(one, packaged, seeded)}
    absent = frozenset(path for path in known if held.get(path) is None)
    return DefaultsPlan(outcomes, SeedState(packaged.version, after), absent)


def reviewed(seeded: SeedState, path: Path, digest: Digest) -> SeedState:
    """The operator has seen what was offered and keeps her own: quiet until there is a newer."""
    return SeedState(seeded.version, {**seeded.files, path: digest})


def _outcome(path: Path, packaged: PackagedFile, seeded: SeedState, held: Digest | None) -> Outcome:
    ours = packaged.files.get(path)
    before = seeded.files.get(path)
    if held is None:
        return (
            DeletedByOperator(path, ours)
            if path in seeded.files or ours is None
            else UpdateFile(path, ours)
        )
    if ours is None:
        return RetiredFile(path, removed=held == before)
    if held == ours:
        return CurrentFile(path)
    return (
        UpdateFile(path, ours)
        if held == before
        else KeptByOperator(path, ours if ours != before else None)
    )


def _state(outcome: Outcome, absent: frozenset[Path]) -> DefaultFileState:
    match outcome:
        case UpdateFile(path):
            return DefaultFileState.NEW if path in absent else DefaultFileState.BEHIND
        case KeptByOperator():
            return DefaultFileState.EDITED
        case CurrentFile():
            return DefaultFileState.CURRENT
        case DeletedByOperator():
            return DefaultFileState.DELETED
        case RetiredFile():
            return DefaultFileState.RETIRED


def _memory(
    outcome: Outcome, packaged: PackagedFile, seeded: SeedState
) -> Iterator[tuple[Path, Digest | None]]:
    """What is remembered of a path: our own bytes once they stand there, else what it was."""
    match outcome:
        case UpdateFile(path) | CurrentFile(path):
            yield path, packaged.files[path]
        case KeptByOperator(path) | DeletedByOperator(path):
            yield path, seeded.files.get(path)
        case RetiredFile():
            return


def _changes(outcomes: tuple[Outcome, ...]) -> Iterator[tuple[Path, Digest | None]]:
    for outcome in outcomes:
        match outcome:
            case UpdateFile(path, digest):
                yield path, digest
            case RetiredFile(path, removed=True):
                yield path, None
            case KeptByOperator() | CurrentFile() | DeletedByOperator() | RetiredFile():
                pass


def _offers(outcomes: tuple[Outcome, ...]) -> Iterator[tuple[Path, Digest]]:
    for outcome in outcomes:
        match outcome:
            case KeptByOperator(path, offered) | DeletedByOperator(path, offered):
                if offered is not None:
                    yield path, offered
            case UpdateFile() | CurrentFile() | RetiredFile():
                pass
