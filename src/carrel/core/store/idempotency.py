"""Receipts: what was answered to a request that must not be done twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Receipt:
    """An answer as it was sent: the body sealed, since it may show a key that is shown once."""

    status: int
    sealed: str


@dataclass(frozen=True, slots=True)
class Taken:
    """The key is this request's: do the work, then settle."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another request with the same key and fingerprint is being answered."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The key was used for another request."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The work was committed but its answer was lost: these versions were its outcome."""

    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    receipt: Receipt


Claim = Taken | Waiting | Mismatch | Marked | Settled
