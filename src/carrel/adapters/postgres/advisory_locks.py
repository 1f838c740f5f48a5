"""What is locked, by name, and the numbers that PostgreSQL knows these locks by."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from carrel.core.identifiers import Scope

RECORDS: Final = "records"
"""All records together: whoever changes one has this too."""


def scope_name(scope: Scope) -> str:
    return f"scope/{scope.tenant}/{scope.kind}/{scope.name}"


def shelf_name(tenant: str, record_type: str) -> str:
    return f"shelf/{tenant}/{record_type}"


def content_name(id: int) -> str:
    return f"content/{id}"


def run_name(id: str) -> str:
    return f"run/{id}"


@lru_cache(maxsize=50_000)
def lock_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)


def in_order(mine: Collection[str], ours: Collection[str]) -> list[tuple[int, bool]]:
    """Locks in the one order that everybody takes them in, each with whether it is for oneself."""
    shared = {lock_of(name): False for name in ours}
    return sorted((shared | {lock_of(name): True for name in mine}).items())
