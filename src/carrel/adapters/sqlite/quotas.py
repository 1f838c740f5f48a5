"""Quotas of scopes: files and bytes that a commit would leave."""

from __future__ import annotations

from collections.abc import Mapping

from carrel.adapters.sqlite.writer_cache import ScopeState
from carrel.core.identifiers import Path
from carrel.core.store.commit import Quota, QuotaExceeded
from carrel.core.store.entry import Entry, Head


def check_quota(
    quota: Quota,
    state: ScopeState,
    final: Mapping[Path, Entry | None],
    before: Mapping[Path, Head | None],
) -> QuotaExceeded | None:
    """Check the final entries of paths against those before. A scope that shrinks passes."""
    entries = {path: head.entry if head else None for path, head in before.items()}
    files = sum(count_files(final[path]) - count_files(entries[path]) for path in entries)
    size = sum(count_bytes(final[path]) - count_bytes(entries[path]) for path in entries)
    has_too_many_files = files > 0 and state.files + files > quota.max_files
    is_too_large = quota.max_bytes is not None and size > 0 and state.size + size > quota.max_bytes
    if has_too_many_files or is_too_large:
        return QuotaExceeded(quota, state.files + files, state.size + size)
    return None


def count_files(entry: Entry | None) -> int:
    return 1 if entry else 0


def count_bytes(entry: Entry | None) -> int:
    return entry.blob.size if entry else 0
