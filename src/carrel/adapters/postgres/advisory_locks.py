"""Names of advisory locks and the numbers PostgreSQL knows them by."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from carrel.core.identifiers import Scope
from carrel.core.store.idempotency import IdempotencyKey

RECORDS_LOCK: Final = "records"
"""Lock of all records; held by every writer of an audited record."""


def scope_lock_name(scope: Scope) -> str:
    return f"scope/{scope.tenant}/{scope.kind}/{scope.name}"


def collection_lock_name(tenant: str, record_type: str) -> str:
    return f"collection/{tenant}/{record_type}"


def content_lock_name(id: int) -> str:
    return f"content/{id}"


def idempotency_key_lock_name(key: IdempotencyKey) -> str:
    return f"idempotency_key/{key.tenant}/{key.endpoint}/{key.key}"


def run_lock_name(id: str) -> str:
    return f"run/{id}"


@lru_cache(maxsize=50_000)
def lock_number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)


def ordered_locks(
    exclusive_names: Collection[str], shared_names: Collection[str]
) -> list[tuple[int, bool]]:
    """Return (number, exclusive) pairs in the order in which every writer locks."""
    shared = {lock_number(name): False for name in shared_names}
    return sorted((shared | {lock_number(name): True for name in exclusive_names}).items())
