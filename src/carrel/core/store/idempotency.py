"""Idempotency keys, and the responses stored under them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

RETENTION_MS: Final = 24 * 3600 * 1000
"""Age at which a key and its response are deleted."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Identifies one request that must be processed at most once."""

    tenant: str
    endpoint: str
    key: str
    result_numbers: tuple[int, ...] = ()
    """Numbers that mark the key after the versions of its commit."""


def number_from_id(id: str) -> int:
    """Number in the hex digits of an id, to mark a key with what was created."""
    return int(id.rpartition("_")[2].replace("-", ""), 16)


def id_from_number(prefix: str, number: int) -> str:
    """Id with this prefix and number, the reverse of `number_from_id`."""
    return f"{prefix}_{number:024x}"


def key_with_result(key: IdempotencyKey | None, id: str) -> IdempotencyKey | None:
    """Return the key, marked by its commit with the id of the record that the request returns."""
    return None if key is None else replace(key, result_numbers=(number_from_id(id),))


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A sent response.

    The body is sealed, since it may contain a key that is shown only once.
    """

    status: int
    sealed: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is claimed for this request: process it, then complete the claim."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """An identical request with this key is being processed."""


@dataclass(frozen=True, slots=True)
class KeyMismatch:
    """The key was used for a different request."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The change was committed but the response was not stored.

    `versions` are its result: versions of files, or numbers of entries and ids.
    """

    versions: tuple[int, ...]
    revision: int = 0
    """Greatest revision of a scope that it wrote to."""


@dataclass(frozen=True, slots=True)
class Completed:
    response: StoredResponse


Claim = Claimed | InProgress | KeyMismatch | Committed | Completed
