"""Receipts: what was answered to a request that must not be done twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer as it was sent: the body sealed, since it may show a key that is shown once."""

    status: int
    sealed: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is this request's: do the work, then settle."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """Another request with the same key and fingerprint is being answered."""


@dataclass(frozen=True, slots=True)
class KeyMismatch:
    """The key was used for another request."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The work was committed but its answer was lost: these versions were its outcome."""

    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    receipt: StoredResponse


Claim = Claimed | InProgress | KeyMismatch | Committed | Completed
