"""Applies record changes inside a commit batch."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import Row, record_from_row
from carrel.core.identifiers import TimestampMs
from carrel.core.search.full_text import SEARCHED_TYPES, index_terms
from carrel.core.store.audit_filter import audit_action, audit_keys
from carrel.core.store.commit import Commit, ExpectationFailed, audit_subjects
from carrel.core.store.record import (
    NO_KEY,
    UNAUDITED_TYPES,
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
)

_RecordKey = tuple[str, RecordType, str]


class RecordChanges:
    """Record part of one transaction. Changes are rare, so they are written at once."""

    def __init__(
        self, db: sqlite3.Connection, collection_revisions: dict[tuple[str, RecordType], int]
    ) -> None:
        self._db = db
        self._collection_revisions = collection_revisions
        self.has_changed = False
        self._audit_rows: list[tuple[Row, list[str]]] = []
        """Audit entries, each with its index keys."""
        self._revisions: dict[_RecordKey, int] = {}
        """Revisions of records that commits expect."""

    def preload(self, commits: Sequence[Commit]) -> None:
        """Read the revisions of all records that the commits expect, in one query."""
        keys = {(r.tenant, r.type, r.id) for commit in commits for r in commit.record_revisions}
        requested = [key for key in keys if key not in self._revisions]
        if not requested:
            return
        self._revisions.update(dict.fromkeys(requested, 0))
        for index, revision in self._db.execute(
            STATEMENTS["record_revisions"], (json.dumps(requested),)
        ).fetchall():
            self._revisions[requested[index]] = revision

    def conflict(self, commit: Commit) -> ExpectationFailed | None:
        return self._changed_read(commit) or self._refused_change(commit)

    def _changed_read(self, commit: Commit) -> ExpectationFailed | None:
        """Return the first collection or record that changed since it was read."""
        for collection_revision in commit.collection_revisions:
            if self._collection_revision(collection_revision) != collection_revision.revision:
                return ExpectationFailed(collection_revision)
        for read in commit.record_revisions:
            if self._record_revision(read.tenant, read.type, read.id) != read.revision:
                return ExpectationFailed(read)
        return None

    def _refused_change(self, commit: Commit) -> ExpectationFailed | None:
        owners: dict[str, _RecordKey] = {}
        for change in commit.changes:
            record = self._find(change)
            if change.expected is not None and change.expected != (
                record.revision if record else 0
            ):
                return ExpectationFailed(change)
            for name in change.unique_keys if change.body is not None else ():
                owner = owners.setdefault(name, _record_key(change))
                if owner != _record_key(change) or self._owner(name, commit) not in {None, owner}:
                    return ExpectationFailed(change, unique_key=name)
        return None

    def apply(self, commit: Commit) -> None:
        """Apply the changes and collect audit entries."""
        changed = [change for change in commit.changes if self._change(change, commit.at)]
        for tenant, record_type in {(change.tenant, change.type) for change in changed}:
            self._db.execute(STATEMENTS["bump_collection_revision"], (tenant, record_type))
            self._collection_revisions.pop((tenant, record_type), None)
            self.has_changed = self.has_changed or record_type not in UNAUDITED_TYPES
        for tenant, subjects in sorted(audit_subjects(commit).items()):
            key = commit.key or NO_KEY
            row = (commit.at, commit.author, commit.reason, json.dumps(subjects), key.id, key.name)
            keys = audit_keys(commit, subjects)
            self._audit_rows.append(((tenant, *row, audit_action(commit)), keys))

    def flush(self) -> None:
        if self._audit_rows:
            self._add_audit_entries()
        if self.has_changed:
            row = self._db.execute(STATEMENTS["records_revision"]).fetchone()
            self._db.execute(STATEMENTS["set_counter"], ("records", (row[0] if row else 0) + 1))

    def _add_audit_entries(self) -> None:
        [last] = self._db.execute(STATEMENTS["last_audit_id"]).fetchone()
        entries = list(enumerate(self._audit_rows, start=(last or 0) + 1))
        rows = [(id, *row) for id, (row, _) in entries]
        keys = [(row[0], name, row[1], id) for id, (row, names) in entries for name in names]
        self._db.executemany(STATEMENTS["add_audit_entry"], rows)
        self._db.executemany(STATEMENTS["add_audit_key"], keys)

    def _record_revision(self, *key: Any) -> int:
        if key not in self._revisions:
            row = self._db.execute(STATEMENTS["record"], key).fetchone()
            self._revisions[key] = record_from_row(row).revision if row else 0
        return self._revisions[key]

    def _collection_revision(self, collection: CollectionRevision) -> int:
        key = (collection.tenant, collection.type)
        revision = self._collection_revisions.get(key)
        if revision is None:
            row = self._db.execute(STATEMENTS["collection_revision"], key).fetchone()
            revision = self._collection_revisions[key] = row[0] if row else 0
        return revision

    def _find(self, change: RecordChange) -> Record | None:
        row = self._db.execute(
            STATEMENTS["record"], (change.tenant, change.type, change.id)
        ).fetchone()
        return record_from_row(row) if row else None

    def _owner(self, name: str, commit: Commit) -> _RecordKey | None:
        """Return the record that owns a unique key, unless this commit releases it."""
        row = self._db.execute(STATEMENTS["unique_key_owner"], (name,)).fetchone()
        if row is None:
            return None
        owner = (row[0], RecordType(row[1]), row[2])
        is_freed = any(
            _record_key(change) == owner and name not in change.unique_keys
            for change in commit.changes
        )
        return None if is_freed else owner

    def _change(self, change: RecordChange, at: TimestampMs) -> bool:
        """Write or delete one record; return False if there was nothing to delete."""
        existing, key = self._find(change), _record_key(change)
        self._revisions.pop(key, None)
        self._db.execute(STATEMENTS["delete_unique_keys"], key)
        self._db.execute(STATEMENTS["delete_index_keys"], key)
        if change.type in SEARCHED_TYPES:
            self._db.execute(STATEMENTS["delete_search_terms"], key)
        if change.body is None:
            self._db.execute(STATEMENTS["delete_record"], key)
            return existing is not None
        revision, created_at = (existing.revision + 1, existing.created_at) if existing else (1, at)
        body = json.dumps(change.body, ensure_ascii=False, separators=(",", ":"))
        self._db.execute(STATEMENTS["set_record"], (*key, revision, body, created_at, at))
        for name in change.unique_keys:
            self._db.execute(STATEMENTS["delete_unique_key"], (name,))
            self._db.execute(STATEMENTS["add_unique_key"], (name, *key))
        for name in change.index_keys:
            self._db.execute(
                STATEMENTS["add_index_key"], (change.tenant, change.type, name, change.id)
            )
        if change.type in SEARCHED_TYPES:
            self._db.executemany(STATEMENTS["add_search_term"], _search_term_rows(change))
        return True


def _search_term_rows(change: RecordChange) -> list[Row]:
    assert change.body is not None
    terms = index_terms(change.type, change.body)
    return [
        (change.tenant, change.type, index_key, term, change.id)
        for index_key in change.index_keys
        for term in terms
    ]


def _record_key(change: RecordChange) -> _RecordKey:
    return (change.tenant, change.type, change.id)
