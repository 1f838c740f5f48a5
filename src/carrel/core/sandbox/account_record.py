"""Records of sandboxes and shared workspaces, which have the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, decode_body


class AccountRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    config: Mapping[str, Any]
    """Secrets of a sandbox are sealed."""
    description: str | UnsetType = UNSET
    request: str | UnsetType = UNSET
    """Hash of the idempotency key that created the record."""
    metadata: Mapping[str, str] | UnsetType = UNSET
    """Of a workspace: pairs that the caller set over the Memory Stores API."""
    archived_at: TimestampMs | UnsetType = UNSET
    """Of a workspace: since when its files can only be read and deleted."""


def account_from_record(record: Record) -> AccountRecord:
    return decode_body(record, AccountRecord)
