"""Encodes commits as column arrays of ``apply_commits`` and decodes its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from carrel.adapters.postgres.advisory_locks import (
    RECORDS_LOCK,
    collection_lock_name,
    content_lock_name,
    idempotency_key_lock_name,
    ordered_locks,
    run_lock_name,
    scope_lock_name,
)
from carrel.adapters.postgres.rows import (
    Row,
    digest_bytes,
    from_json,
    head_from_row,
    numeric_columns,
    to_json,
    transpose,
)
from carrel.core.identifiers import Digest, Path, Scope
from carrel.core.search.full_text import index_terms
from carrel.core.store.audit_filter import audit_action, audit_keys
from carrel.core.store.blob import Blob
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    ExpectPathFree,
    Outcome,
    PathOccupied,
    QuotaExceeded,
    Write,
    audit_subjects,
    event_drafts,
)
from carrel.core.store.entry import (
    DIRECTORY_TYPE,
    Entry,
    FileAttributes,
    Head,
    source_to_text,
)
from carrel.core.store.record import UNAUDITED_TYPES, RecordType


class CommitColumns:
    """Commits as column arrays. Rows refer to each other by index, from 1."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = commits
        self._exclusive_locks: set[str] = set()
        self._shared_locks: set[str] = set()
        self._scopes: dict[Scope, int] = {}
        self._paths: dict[tuple[Scope, Path], int] = {}
        self._collections: dict[tuple[str, RecordType], int] = {}
        self._blobs: dict[tuple[Digest, int | None], int] = {}
        self._path_rows: list[Row] = []
        self._path_numbers: list[Row] = []
        self._blob_rows: list[Row] = []
        self._blob_numbers: list[Row] = []
        self._commit_rows: list[Row] = []
        self._commit_numbers: list[Row] = []
        self._expect_numbers: list[Row] = []
        self._collection_numbers: list[Row] = []
        self._quota_numbers: list[Row] = []
        self._path_check_numbers: list[Row] = []
        self._path_checks: list[ExpectPathFree] = []
        self._write_rows: list[Row] = []
        self._write_numbers: list[Row] = []
        self._starts: list[Row] = [(0, 0, 0, 0, 0)]
        for commit in commits:
            self._add(commit)

    def arguments(self) -> list[Any]:
        scopes = [(scope.tenant, scope.kind, scope.name) for scope in self._scopes]
        return [
            *transpose(scopes, 3),
            *transpose(self._path_rows, 1),
            *transpose(list(self._collections), 2),
            *transpose(self._blob_rows, 2),
            *transpose(self._commit_rows, 5),
            *transpose(self._write_rows, 4),
            *self.locks(),
            *numeric_columns(self._path_numbers, 1),
            *numeric_columns(self._blob_numbers, 2),
            *numeric_columns(self._commit_numbers, 2),
            *numeric_columns(self._starts, 5),
            *numeric_columns(self._expect_numbers, 3),
            *numeric_columns(self._collection_numbers, 2),
            *numeric_columns(self._quota_numbers, 3),
            *numeric_columns(self._path_check_numbers, 3),
            *numeric_columns(self._write_numbers, 8),
        ]

    def locks(self) -> list[str]:
        """Numbers of all locks of the commits, and whether each is exclusive."""
        return numeric_columns(ordered_locks(self._exclusive_locks, self._shared_locks), 2)

    def outcomes(self, result: Row) -> list[Outcome]:
        codes, rows, writes, states, *heads_and_ids = result
        heads = self._heads(*heads_and_ids)
        outcomes: list[Outcome] = []
        for index, commit in enumerate(self._commits):
            starts = self._starts[index]
            if codes[index] == "applied":
                outcomes.append(Applied(tuple(heads[starts[3] : self._starts[index + 1][3]])))
            elif codes[index] == "expectation":
                expect = commit.expects[rows[index] - starts[0] - 1]
                head = (
                    heads[writes[index] - 1]
                    if writes[index]
                    else _head_from_json(expect.path, states[index])
                )
                outcomes.append(ExpectationFailed(expect, head))
            elif codes[index] == "collection":
                outcomes.append(
                    ExpectationFailed(commit.collection_revisions[rows[index] - starts[1] - 1])
                )
            elif codes[index] == "change":
                position, unique_key = from_json(states[index])
                expected = (*commit.changes, *commit.record_revisions)[position - 1]
                outcomes.append(ExpectationFailed(expected, unique_key=unique_key))
            elif codes[index] == "path":
                outcomes.append(
                    PathOccupied(self._path_checks[rows[index] - 1], Path(from_json(states[index])))
                )
            else:
                quota = commit.quotas[rows[index] - starts[2] - 1]
                outcomes.append(QuotaExceeded(quota, *from_json(states[index])))
        return outcomes

    def _heads(
        self, versions: Row, offsets: Row, revisions: Row, timestamps: Row, ids: Row, file_ids: Row
    ) -> list[Head]:
        """Return the head of each write; those of refused commits are meaningless."""
        writes = (write for commit in self._commits for write in commit.writes)
        heads = []
        for index, write in enumerate(writes):
            entry = write.entry
            if entry is not None:
                _, _, blob, base, *_ = self._write_numbers[index]
                stored_blob = Blob(entry.blob.digest, entry.blob.size, ids[blob - 1])
                stored_base = entry.base and Blob(entry.base.digest, entry.base.size, ids[base - 1])
                entry = Entry(stored_blob, stored_base, entry.type, entry.attributes)
            columns = (versions[index], revisions[index], timestamps[index])
            offset, file_id = offsets[index] or 0, file_ids[index]
            facts = (write.directory, file_id, write.reviewed)
            heads.append(Head(write.path, *columns, entry, offset, *facts))
        return heads

    def _add(self, commit: Commit) -> None:
        for expect in commit.expects:
            index = self._path_index(expect.scope, expect.path)
            self._expect_numbers.append((index, expect.version, expect.live))
        if commit.unchanged_paths is not None:
            self._shared_locks.update(map(scope_lock_name, commit.unchanged_paths.revisions))
        for collection in commit.collection_revisions:
            index = self._collection_index(collection.tenant, collection.type)
            self._collection_numbers.append((index, collection.revision))
        for quota in commit.quotas:
            self._quota_numbers.append(
                (self._scope_index(quota.scope), quota.max_files, quota.max_bytes)
            )
        for path_check in commit.path_checks:
            self._add_path_check(path_check)
        self._add_writes(commit.writes)
        self._starts.append(
            (
                *(len(self._expect_numbers), len(self._collection_numbers)),
                *(len(self._quota_numbers), len(self._write_numbers)),
                len(self._path_check_numbers),
            )
        )
        has_changes = any(
            (commit.changes, commit.record_revisions, commit.audit_subjects, commit.events)
        )
        changes = self._changes_to_json(commit) if has_changes else None
        row = (
            commit.author,
            commit.reason,
            self._lock_run(commit),
            changes,
            self._idempotency_key_to_json(commit),
        )
        self._commit_rows.append(row)
        self._commit_numbers.append((commit.at, max(commit.max_versions, 1)))

    def _add_path_check(self, path_check: ExpectPathFree) -> None:
        """Add a row per parent that must not be a file, and one per scope.

        The latter checks that nothing lives below the path.
        """
        own_index = self._path_index(path_check.scopes[0], path_check.path)
        for scope in path_check.scopes:
            parents = [
                (own_index, self._path_index(scope, parent), None)
                for parent in path_check.path.parents
            ]
            self._path_check_numbers += (*parents, (own_index, None, self._scope_index(scope)))
            self._path_checks += [path_check] * (len(parents) + 1)

    def _add_writes(self, writes: Sequence[Write]) -> None:
        commit_number = len(self._commit_rows) + 1
        path_indexes = [self._path_index(write.scope, write.path) for write in writes]
        last = {path_index: position for position, path_index in enumerate(path_indexes)}
        for position, (write, path_index) in enumerate(zip(writes, path_indexes, strict=True)):
            self._exclusive_locks.add(scope_lock_name(write.scope))
            entry = write.entry
            blob = entry and self._blob_index(entry.blob)
            base = entry and entry.base and self._blob_index(entry.base)
            source = write.source and source_to_text(write.source)
            self._write_rows.append((_type(write), write.file_id, source, write.reviewed))
            is_last = last[path_index] == position
            attributes = write.directory or (entry and entry.attributes) or FileAttributes()
            columns = (write.version_offset, attributes.mode, attributes.mtime_ns)
            self._write_numbers.append((commit_number, path_index, blob, base, is_last, *columns))

    def _scope_index(self, scope: Scope) -> int:
        index = self._scopes.get(scope)
        if index is None:
            index = self._scopes[scope] = len(self._scopes) + 1
            self._shared_locks.add(scope_lock_name(scope))
        return index

    def _path_index(self, scope: Scope, path: Path) -> int:
        index = self._paths.get((scope, path))
        if index is None:
            self._path_rows.append((path.text,))
            self._path_numbers.append((self._scope_index(scope),))
            index = self._paths[scope, path] = len(self._path_rows)
        return index

    def _collection_index(self, tenant: str, record_type: RecordType) -> int:
        index = self._collections.get((tenant, record_type))
        if index is None:
            index = self._collections[tenant, record_type] = len(self._collections) + 1
            self._shared_locks.add(collection_lock_name(tenant, record_type))
        return index

    def _blob_index(self, blob: Blob) -> int:
        row_id = blob.storage_ref if isinstance(blob.storage_ref, int) else None
        index = self._blobs.get((blob.digest, row_id))
        if index is None:
            body = blob.storage_ref if row_id is None else None
            self._blob_rows.append((digest_bytes(blob.digest), body))
            self._blob_numbers.append((row_id, blob.size))
            index = self._blobs[blob.digest, row_id] = len(self._blob_rows)
            if row_id is not None:
                self._shared_locks.add(content_lock_name(row_id))
        return index

    def _lock_run(self, commit: Commit) -> str | None:
        if commit.run is not None:
            self._exclusive_locks.add(run_lock_name(commit.run))
        return commit.run

    def _changes_to_json(self, commit: Commit) -> str:
        """Encode record changes, records read, audit subjects and events, in this order.

        Unaudited record types do not need the lock of all records: their unique keys start with
        tenant and type, which the collection's lock covers.
        """
        changes = commit.changes
        if any(change.type not in UNAUDITED_TYPES for change in changes):
            self._exclusive_locks.add(RECORDS_LOCK)
        self._exclusive_locks.update(
            collection_lock_name(change.tenant, change.type) for change in changes
        )
        return to_json(
            [
                {
                    "kind": "change",
                    "tenant": change.tenant,
                    "type": change.type,
                    "id": change.id,
                    "body": None if change.body is None else to_json(change.body),
                    "expected": change.expected,
                    "unique_keys": () if change.body is None else change.unique_keys,
                    "index_keys": change.index_keys,
                    "terms": () if change.body is None else index_terms(change.type, change.body),
                    "audited": change.type not in UNAUDITED_TYPES,
                }
                for change in changes
            ]
            + self._records_read(commit)
            + _subjects(commit)
            + _key_items(commit)
            + _audit_items(commit)
            + [
                {
                    "kind": "event",
                    "tenant": draft.tenant,
                    "type": draft.type,
                    "payload": to_json(draft.payload),
                    "audited": False,
                }
                for draft in event_drafts(commit)
            ]
        )

    def _records_read(self, commit: Commit) -> list[dict[str, object]]:
        """Lock and encode the records that the commit expects unchanged."""
        self._shared_locks.update(
            collection_lock_name(read.tenant, read.type) for read in commit.record_revisions
        )
        return [
            {
                "kind": "read",
                "tenant": read.tenant,
                "type": read.type,
                "id": read.id,
                "expected": read.revision,
                "audited": False,
            }
            for read in commit.record_revisions
        ]

    def _idempotency_key_to_json(self, commit: Commit) -> str | None:
        key = commit.idempotency_key
        if key is None:
            return None
        self._exclusive_locks.add(idempotency_key_lock_name(key))
        return to_json((key.tenant, key.endpoint, key.key, key.result_numbers))


def _type(write: Write) -> str | None:
    """Type column of a write; None is a tombstone."""
    if write.entry is not None:
        return write.entry.type
    return None if write.directory is None else DIRECTORY_TYPE


def _subjects(commit: Commit) -> list[dict[str, object]]:
    """Records that the audit names beside those that change."""
    return [
        {
            "kind": "subject",
            "tenant": commit.tenant,
            "type": record_type,
            "id": id,
            "audited": True,
        }
        for record_type, _, id in (name.partition("/") for name in commit.audit_subjects)
    ]


def _head_from_json(path: Path, text: str | None) -> Head | None:
    if text is None:
        return None
    row = from_json(text)
    for position in (4, 8):
        row[position] = row[position] and bytes.fromhex(row[position])
    return head_from_row(path, row, 0)


def _audit_items(commit: Commit) -> list[dict[str, Any]]:
    """Encode what the audit entries of a commit are found by."""
    subjects = audit_subjects(commit)
    if not subjects:
        return []
    action = {"kind": "action", "name": audit_action(commit), "audited": False}
    keys = [
        {"kind": "audit key", "tenant": tenant, "name": name, "audited": False}
        for tenant, names in subjects.items()
        for name in audit_keys(commit, names)
    ]
    return [action, *keys]


def _key_items(commit: Commit) -> list[dict[str, Any]]:
    """Encode the author's key for the audit."""
    key = commit.key
    return [] if key is None else [asdict(key) | {"kind": "key", "audited": False}]
