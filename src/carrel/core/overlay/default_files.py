"""How packaged files are merged into a tenant's defaults: three ways, and never over an edit.

Compared are what we package, what we last wrote, and what stands there now. A file that is still
what we wrote follows; everything else belongs to the operator, who is only told of what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from carrel.core.identifiers import Digest, Path


class Packaged(Struct, frozen=True):
    version: int
    """From 1, rising whenever a file changes, so that an older program undoes nothing."""
    files: Mapping[Path, Digest]


class Seeded(Struct, frozen=True):
    """What a tenant's defaults have had from us; as it is made, nothing yet."""

    version: int = 0
    files: Mapping[Path, Digest | None] = {}
    """What we last wrote at a path, or the operator has reviewed since; None where a file of the
    operator's own was there before ours."""


class Follow(Struct, frozen=True):
    """To be written: it is new, or still exactly what we wrote before."""

    path: Path
    digest: Digest


class Kept(Struct, frozen=True):
    """The operator's own text stays; ``offered`` is ours, if it has moved on since."""

    path: Path
    offered: Digest | None


class Current(Struct, frozen=True):
    path: Path


class Gone(Struct, frozen=True):
    """Deleted by the operator, and stays so; ``offered`` can be had, None if packaged no more."""

    path: Path
    offered: Digest | None


class Retired(Struct, frozen=True):
    """Packaged no more: removed if it is still what we wrote, else the operator's own from now."""

    path: Path
    removed: bool


Outcome = Follow | Kept | Current | Gone | Retired


class State(StrEnum):
    """How a file stands to the one that is packaged."""

    CURRENT = "current"
    NEW = "new"
    BEHIND = "behind"
    EDITED = "edited"
    DELETED = "deleted"
    RETIRED = "retired"


class Plan(Struct, frozen=True):
    outcomes: tuple[Outcome, ...]
    """One for each path that is packaged or was, sorted by path."""
    seeded: Seeded
    """What is to be remembered, in the same commit."""
    absent: frozenset[Path] = frozenset()

    @property
    def states(self) -> Mapping[Path, State]:
        return {outcome.path: _state(outcome, self.absent) for outcome in self.outcomes}

    @property
    def writes(self) -> Mapping[Path, Digest | None]:
        """What is to change: the content of a path, or None to remove it."""
        return dict(_changes(self.outcomes))

    @property
    def offers(self) -> Mapping[Path, Digest]:
        """What the operator may take, and gets only by asking for it."""
        return dict(_offers(self.outcomes))


def plan(packaged: Packaged, seeded: Seeded, held: Mapping[Path, Digest | None]) -> Plan:
    """What becomes of each path; one that ``held`` says nothing of, or None, is not there."""
    if packaged.version < seeded.version:
        return Plan((), seeded)
    known = sorted({*packaged.files, *seeded.files})
    outcomes = tuple(_outcome(path, packaged, seeded, held.get(path)) for path in known)
    after = {path: digest for one in outcomes for path, digest in _memory(one, packaged, seeded)}
    absent = frozenset(path for path in known if held.get(path) is None)
    return Plan(outcomes, Seeded(packaged.version, after), absent)


def reviewed(seeded: Seeded, path: Path, digest: Digest) -> Seeded:
    """The operator has seen what was offered and keeps her own: quiet until there is a newer."""
    return Seeded(seeded.version, {**seeded.files, path: digest})


def _outcome(path: Path, packaged: Packaged, seeded: Seeded, held: Digest | None) -> Outcome:
    ours = packaged.files.get(path)
    before = seeded.files.get(path)
    if held is None:
        return Gone(path, ours) if path in seeded.files or ours is None else Follow(path, ours)
    if ours is None:
        return Retired(path, removed=held == before)
    if held == ours:
        return Current(path)
    return Follow(path, ours) if held == before else Kept(path, ours if ours != before else None)


def _state(outcome: Outcome, absent: frozenset[Path]) -> State:
    match outcome:
        case Follow(path):
            return State.NEW if path in absent else State.BEHIND
        case Kept():
            return State.EDITED
        case Current():
            return State.CURRENT
        case Gone():
            return State.DELETED
        case Retired():
            return State.RETIRED


def _memory(
    outcome: Outcome, packaged: Packaged, seeded: Seeded
) -> Iterator[tuple[Path, Digest | None]]:
    """What is remembered of a path: our own bytes once they stand there, else what it was."""
    match outcome:
        case Follow(path) | Current(path):
            yield path, packaged.files[path]
        case Kept(path) | Gone(path):
            yield path, seeded.files.get(path)
        case Retired():
            return


def _changes(outcomes: tuple[Outcome, ...]) -> Iterator[tuple[Path, Digest | None]]:
    for outcome in outcomes:
        match outcome:
            case Follow(path, digest):
                yield path, digest
            case Retired(path, removed=True):
                yield path, None
            case Kept() | Current() | Gone() | Retired():
                pass


def _offers(outcomes: tuple[Outcome, ...]) -> Iterator[tuple[Path, Digest]]:
    for outcome in outcomes:
        match outcome:
            case Kept(path, offered) | Gone(path, offered):
                if offered is not None:
                    yield path, offered
            case Follow() | Current() | Retired():
                pass
