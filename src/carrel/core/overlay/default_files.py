"""Three-way merge of packaged files into a tenant's defaults.

Compares the packaged content, the content last written by Carrel and the stored content. A file
that is still as written is updated; an edited file stays and the new version is only offered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from carrel.core.identifiers import Digest, Path
from carrel.core.store.record import Record, RecordChange, RecordType, decode_body, encode_body


class PackagedFiles(Struct, frozen=True):
    version: int
    """Starts at 1 and increases with every change, so an older release undoes nothing."""
    files: Mapping[Path, Digest]


class SeedState(Struct, frozen=True):
    """What Carrel last wrote into a tenant's defaults."""

    version: int = 0
    files: Mapping[Path, Digest | None] = {}
    """Digest last written by Carrel or reviewed by the operator.

    None if the operator's file came first.
    """


class DefaultsRecord(Struct, frozen=True, rename="camel"):
    """Seed state as stored."""

    version: int
    files: Mapping[str, Digest | None]


class UpdateFile(Struct, frozen=True):
    """To be written: the file is new or unchanged since Carrel wrote it."""

    path: Path
    digest: Digest


class KeptByOperator(Struct, frozen=True):
    """The operator's text stays; `offered` is the packaged one if it changed since."""

    path: Path
    offered: Digest | None


class OccupiedPath(Struct, frozen=True):
    """New, but a layer has a directory here or a file above; decided again next time."""

    path: Path
    offered: Digest


class CurrentFile(Struct, frozen=True):
    path: Path


class DeletedByOperator(Struct, frozen=True):
    """Deleted by the operator and stays deleted.

    `offered` is None if no longer packaged.
    """

    path: Path
    offered: Digest | None


class RetiredFile(Struct, frozen=True):
    """No longer packaged: removed if unchanged, else kept as the operator's file."""

    path: Path
    removed: bool


DefaultFileOutcome = (
    UpdateFile | KeptByOperator | OccupiedPath | CurrentFile | DeletedByOperator | RetiredFile
)


class DefaultFileState(StrEnum):
    """State of a file relative to its packaged version."""

    CURRENT = "current"
    NEW = "new"
    OUTDATED = "behind"
    EDITED = "edited"
    DELETED = "deleted"
    RETIRED = "retired"


class DefaultsPlan(Struct, frozen=True):
    outcomes: tuple[DefaultFileOutcome, ...]
    """One per path that is or was packaged, sorted by path."""
    seed_state: SeedState
    """State to store in the same commit."""
    absent_paths: frozenset[Path] = frozenset()

    @property
    def states(self) -> Mapping[Path, DefaultFileState]:
        return {outcome.path: _file_state(outcome, self.absent_paths) for outcome in self.outcomes}

    @property
    def writes(self) -> Mapping[Path, Digest | None]:
        """Content to write by path; None removes the file."""
        return dict(_changes(self.outcomes))

    @property
    def offers(self) -> Mapping[Path, Digest]:
        """Packaged versions that the operator may accept."""
        return dict(_offers(self.outcomes))


def seed_state_from_record(record: Record | None) -> SeedState:
    if record is None:
        return SeedState()
    stored = decode_body(record, DefaultsRecord)
    return SeedState(stored.version, {Path(path): digest for path, digest in stored.files.items()})


def seed_state_change(tenant: str, seeded: SeedState, expected: int) -> RecordChange:
    files = {path.text: digest for path, digest in seeded.files.items()}
    body = encode_body(DefaultsRecord(seeded.version, files))
    return RecordChange(tenant, RecordType.DEFAULTS, tenant, body, expected)


def new_paths(
    packaged: PackagedFiles, seeded: SeedState, stored: Mapping[Path, Digest | None]
) -> Collection[Path]:
    """Packaged paths that were never in the defaults."""
    return [
        path for path in packaged.files if path not in seeded.files and stored.get(path) is None
    ]


def plan_defaults(
    packaged: PackagedFiles,
    seeded: SeedState,
    stored: Mapping[Path, Digest | None],
    occupied: Collection[Path] = (),
) -> DefaultsPlan:
    """Decide the outcome of each path.

    Paths that `stored` lacks or maps to None are absent. New paths that are `occupied`, such as a
    directory of the operator, are only offered.
    """
    if packaged.version < seeded.version:
        return DefaultsPlan((), seeded)
    paths = sorted({*packaged.files, *seeded.files})
    outcomes = tuple(
        OccupiedPath(path, packaged.files[path])
        if path in occupied
        else _decide_outcome(path, packaged, seeded, stored.get(path))
        for path in paths
    )
    recorded = {
        path: digest
        for outcome in outcomes
        for path, digest in _recorded_digests(outcome, packaged, seeded)
    }
    absent = frozenset(path for path in paths if stored.get(path) is None)
    return DefaultsPlan(outcomes, SeedState(packaged.version, recorded), absent)


def mark_reviewed(seeded: SeedState, path: Path, digest: Digest) -> SeedState:
    """Record that the operator saw this version and keeps the stored text."""
    return SeedState(seeded.version, {**seeded.files, path: digest})


def _decide_outcome(
    path: Path, packaged: PackagedFiles, seeded: SeedState, stored: Digest | None
) -> DefaultFileOutcome:
    packaged_digest = packaged.files.get(path)
    last_written = seeded.files.get(path)
    if stored is None:
        return (
            DeletedByOperator(path, packaged_digest)
            if path in seeded.files or packaged_digest is None
            else UpdateFile(path, packaged_digest)
        )
    if packaged_digest is None:
        return RetiredFile(path, removed=stored == last_written)
    if stored == packaged_digest:
        return CurrentFile(path)
    return (
        UpdateFile(path, packaged_digest)
        if stored == last_written
        else KeptByOperator(path, packaged_digest if packaged_digest != last_written else None)
    )


def _file_state(outcome: DefaultFileOutcome, absent: frozenset[Path]) -> DefaultFileState:
    match outcome:
        case UpdateFile(path):
            return DefaultFileState.NEW if path in absent else DefaultFileState.OUTDATED
        case KeptByOperator() | OccupiedPath():
            return DefaultFileState.EDITED
        case CurrentFile():
            return DefaultFileState.CURRENT
        case DeletedByOperator():
            return DefaultFileState.DELETED
        case RetiredFile():
            return DefaultFileState.RETIRED


def _recorded_digests(
    outcome: DefaultFileOutcome, packaged: PackagedFiles, seeded: SeedState
) -> Iterator[tuple[Path, Digest | None]]:
    """Digest to record for a path: the packaged one once written, else the old."""
    match outcome:
        case UpdateFile(path) | CurrentFile(path):
            yield path, packaged.files[path]
        case KeptByOperator(path) | DeletedByOperator(path):
            yield path, seeded.files.get(path)
        case RetiredFile() | OccupiedPath():
            return


def _changes(outcomes: tuple[DefaultFileOutcome, ...]) -> Iterator[tuple[Path, Digest | None]]:
    for outcome in outcomes:
        match outcome:
            case UpdateFile(path, digest):
                yield path, digest
            case RetiredFile(path, removed=True):
                yield path, None
            case (
                KeptByOperator()
                | OccupiedPath()
                | CurrentFile()
                | DeletedByOperator()
                | RetiredFile()
            ):
                pass


def _offers(outcomes: tuple[DefaultFileOutcome, ...]) -> Iterator[tuple[Path, Digest]]:
    for outcome in outcomes:
        match outcome:
            case (
                KeptByOperator(path, offered)
                | OccupiedPath(path, offered)
                | DeletedByOperator(path, offered)
            ):
                if offered is not None:
                    yield path, offered
            case UpdateFile() | CurrentFile() | RetiredFile():
                pass
