"""Records of sandboxes and shared workspaces, which have the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from carrel.core.store.record import Record, decode_body


class AccountRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    config: Mapping[str, Any]
    """Secrets of a sandbox are sealed."""
    description: str | UnsetType = UNSET
    request: str | UnsetType = UNSET
    """Hash of the idempotency key that created the record."""


def account_from_record(record: Record) -> AccountRecord:
    return decode_body(record, AccountRecord)
