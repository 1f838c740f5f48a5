"""Changing records inside a batch, together with files."""

from __future__ import annotations

import json
import sqlite3

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.rows import Row, record_of
from carrel.core.identifiers import TimestampMs
from carrel.core.search.full_text import SEARCHED, index_terms
from carrel.core.store.record import QUIET, CollectionRevision, Record, RecordChange, RecordType
from carrel.core.store.tree import Commit, ExpectationFailed, audit_subjects

_Key = tuple[str, RecordType, str]


class RecordChanges:
    """The records' part of one transaction. Changes are rare, so they are written at once."""

    def __init__(
        self, db: sqlite3.Connection, collection_revisions: dict[tuple[str, RecordType], int]
    ) -> None:
        self._db = db
        self._shelves = collection_revisions
        self.changed = False
        self._deeds: list[Row] = []

    def conflict(self, commit: Commit) -> ExpectationFailed | None:
        for collection_revision in commit.collection_revisions:
            if self._shelf(collection_revision) != collection_revision.revision:
                return ExpectationFailed(collection_revision)
        if not commit.changes:
            return None
        taken: dict[str, _Key] = {}
        for change in commit.changes:
            found = self._find(change)
            if change.expected is not None and change.expected != (found.revision if found else 0):
                return ExpectationFailed(change)
            for name in change.unique_keys if change.body is not None else ():
                owner = taken.setdefault(name, _key(change))
                if owner != _key(change) or self._owner(name, commit) not in {None, owner}:
                    return ExpectationFailed(change, handle=name)
        return None

    def apply(self, commit: Commit) -> None:
        """Make its changes, and note them for the audit with what else it is about."""
        changed = [change for change in commit.changes if self._change(change, commit.at)]
        for tenant, record_type in {(change.tenant, change.type) for change in changed}:
            self._db.execute(SQL["raise_shelf"], (tenant, record_type))
            self._shelves.pop((tenant, record_type), None)
            self.changed = self.changed or record_type not in QUIET
        for tenant, subjects in sorted(audit_subjects(commit).items()):
            self._deeds.append(
                (tenant, commit.at, commit.author, commit.reason, json.dumps(subjects))
            )

    def flush(self) -> None:
        if self._deeds:
            self._db.executemany(SQL["add_audit"], self._deeds)
        if self.changed:
            found = self._db.execute(SQL["records_revision"]).fetchone()
            self._db.execute(SQL["set_counter"], ("records", (found[0] if found else 0) + 1))

    def _shelf(self, collection_revision: CollectionRevision) -> int:
        key = (collection_revision.tenant, collection_revision.type)
        known = self._shelves.get(key)
        if known is None:
            found = self._db.execute(SQL["shelf"], key).fetchone()
            known = self._shelves[key] = found[0] if found else 0
        return known

    def _find(self, change: RecordChange) -> Record | None:
        row = self._db.execute(SQL["record"], (change.tenant, change.type, change.id)).fetchone()
        return record_of(row) if row else None

    def _owner(self, name: str, commit: Commit) -> _Key | None:
        """Who has a handle, unless this very commit takes it away from them."""
        row = self._db.execute(SQL["handle"], (name,)).fetchone()
        if row is None:
            return None
        owner = (row[0], RecordType(row[1]), row[2])
        freed = any(_key(c) == owner and name not in c.unique_keys for c in commit.changes)
        return None if freed else owner

    def _change(self, change: RecordChange, at: TimestampMs) -> bool:
        """Make it so; False where there was nothing to delete."""
        found, key = self._find(change), _key(change)
        self._db.execute(SQL["drop_handles"], key)
        self._db.execute(SQL["drop_links"], key)
        if change.type in SEARCHED:
            self._db.execute(SQL["drop_words"], key)
        if change.body is None:
            self._db.execute(SQL["drop_record"], key)
            return found is not None
        revision, created = (found.revision + 1, found.created_at) if found else (1, at)
        body = json.dumps(change.body, ensure_ascii=False, separators=(",", ":"))
        self._db.execute(SQL["set_record"], (*key, revision, body, created, at))
        for name in change.unique_keys:
            self._db.execute(SQL["free_handle"], (name,))
            self._db.execute(SQL["add_handle"], (name, *key))
        for name in change.index_keys:
            self._db.execute(SQL["add_link"], (change.tenant, change.type, name, change.id))
        if change.type in SEARCHED:
            self._db.executemany(SQL["add_word"], _words(change))
        return True


def _words(change: RecordChange) -> list[Row]:
    assert change.body is not None
    words = index_terms(change.type, change.body)
    return [
        (change.tenant, change.type, link, word, change.id)
        for link in change.index_keys
        for word in words
    ]


def _key(change: RecordChange) -> _Key:
    return (change.tenant, change.type, change.id)
