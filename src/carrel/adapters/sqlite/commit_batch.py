"""Applies many commits in one transaction: checks each, then flushes all rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.listing_checks import are_paths_unchanged, list_occupants
from carrel.adapters.sqlite.quotas import check_quota, count_bytes, count_files
from carrel.adapters.sqlite.record_changes import RecordChanges
from carrel.adapters.sqlite.row_buffers import RowBuffers
from carrel.adapters.sqlite.rows import HeadKey, Row, digest_bytes, head_from_row
from carrel.adapters.sqlite.writer_cache import ScopeState, WriterCache
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.store.blob import Blob
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    ExpectPathFree,
    ExpectPathsUnchanged,
    Outcome,
    PathOccupied,
    Quota,
    QuotaExceeded,
    Write,
    event_drafts,
    first_occupant,
    stored_file_id,
)
from carrel.core.store.entry import (
    DIRECTORY_TYPE,
    Entry,
    FileAttributes,
    Head,
    source_to_text,
)
from carrel.core.store.event import WORKSPACE_UPDATED
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import CorruptContent

_TOMBSTONE_COLUMNS: Final[Row] = (None, None, None, None, None)
"""content, digest, size, base and type of a tombstone."""
_NO_ATTRIBUTES: Final = FileAttributes()


class CommitBatch:
    """One transaction being built. Nothing is visible before ``flush``."""

    def __init__(
        self, db: sqlite3.Connection, cache: WriterCache, heads: Mapping[HeadKey, Head | None]
    ) -> None:
        """``heads`` are cached heads of the reader that are known to be current."""
        self._db = db
        self._cache = cache
        self._reader_heads = heads
        self._heads: dict[HeadKey, Head | None] = {}
        self.records = RecordChanges(db, cache.collection_revisions)
        self.written_heads: dict[HeadKey, Head] = {}
        self._changed_below: dict[HeadKey, list[Path]] = {}
        """Paths created or deleted below each directory in this transaction."""
        self.changed_scopes: dict[Scope, ScopeState] = {}
        self._rows = RowBuffers()
        self._stored_contents: set[int] = set()
        """Ids of contents that this transaction refers to and does not add."""

    def apply(self, commit: Commit) -> Outcome:
        """Apply one commit. Checks everything first, so that a refusal has no effect."""
        if refusal := self._conflict(commit) or self._path_occupied(commit):
            return refusal
        requested = commit.writes
        writes: Sequence[Write] = requested
        if len(requested) != 1 or requested[0].entry is None:
            writes = [
                write
                for write in requested
                if not write.is_deletion
                or write.reviewed is not None
                or self._is_live(write.scope, write.path)
            ]
        if exceeded := self._quota_exceeded(commit.quotas, writes):
            return exceeded
        if commit.changes or commit.audit_subjects:
            self.records.apply(commit)
        heads = self._write_all(writes, commit)
        if len(writes) < len(requested):
            written = {id(write): head for write, head in zip(writes, heads, strict=True)}
            heads = [
                written.get(id(write)) or self._current_head(write, commit) for write in requested
            ]
        if commit.events or commit.changes:
            self._add_commit_events(commit)
        if commit.idempotency_key:
            revision = max((head.revision for head in heads), default=None)
            self.mark_key(commit.idempotency_key, [head.version for head in heads], revision)
        return Applied(tuple(heads))

    def _write_all(self, writes: Sequence[Write], commit: Commit) -> list[Head]:
        if len(writes) == 1:
            return [self._write(writes[0], self._advance_revision(writes[0].scope), commit)]
        states = {
            scope: self._advance_revision(scope) for scope in {write.scope for write in writes}
        }
        return [self._write(write, states[write.scope], commit) for write in writes]

    def preload(self, commits: Sequence[Commit]) -> None:
        """Read all heads, scopes and record revisions that the commits use, in three queries."""
        self.records.preload(commits)
        used_keys = {(expect.scope, expect.path) for commit in commits for expect in commit.expects}
        used_keys |= {(write.scope, write.path) for commit in commits for write in commit.writes}
        self._cache.load_scope_states(self._db, {scope for scope, _ in used_keys})
        states = self._cache.scope_states
        keys = [
            key for key in used_keys if key not in self._heads and key not in self._reader_heads
        ]
        if not keys:
            return
        self._heads.update(dict.fromkeys(keys))
        keys_json = json.dumps([(states[scope].id, path.text) for scope, path in keys])
        for index, *row in self._db.execute(STATEMENTS["heads"], (keys_json,)).fetchall():
            self._heads[keys[index]] = head_from_row(row)

    def scope_state(self, scope: Scope) -> ScopeState:
        state = self._cache.scope_states.get(scope)
        if state is None:
            parameters = (scope.tenant, scope.kind, scope.name)
            row = self._db.execute(STATEMENTS["scope"], parameters).fetchone()
            state = self._cache.scope_states[scope] = ScopeState(*(row or (0, 0, 0, 0)))
        return state

    def ensure_scope(self, scope: Scope) -> ScopeState:
        """Return the scope's state, with a new row if it has none."""
        state = self.scope_state(scope)
        if not state.id:
            self._cache.last_scope_id += 1
            state.id = self._cache.last_scope_id
            self._rows.scopes.append((state.id, scope.tenant, scope.kind, scope.name))
        return state

    def add_event(
        self,
        tenant: str,
        scope: int | None,
        run: str | None,
        sequence: int | None,
        event: tuple[str, str, TimestampMs],
    ) -> None:
        """Log an event given as (type, JSON payload, timestamp)."""
        self._cache.last_event_id += 1
        self._rows.events.append((self._cache.last_event_id, tenant, scope, run, sequence, *event))

    def _add_commit_events(self, commit: Commit) -> None:
        """Log the events of the commit itself."""
        run = commit.run
        for event in event_drafts(commit):
            sequence = self.next_run_sequence(run, event.tenant, commit.at) if run else None
            columns = (event.type, json.dumps(event.payload, ensure_ascii=False), commit.at)
            self.add_event(event.tenant, None, run, sequence, columns)

    def next_run_sequence(self, run: str, tenant: str, at: TimestampMs) -> int | None:
        """Number the next event of a run, which is a report too."""
        row = self._db.execute(STATEMENTS["next_run_sequence"], (at, run, tenant)).fetchone()
        return row[0] if row else None

    def flush(self) -> None:
        """Write all rows. Raises CorruptContent if a stored content was deleted meanwhile."""
        self._check_stored_contents()
        self._write_rows()
        self.records.flush()

    def _write_rows(self) -> None:
        scope_rows: list[Row] = [
            (state.revision, state.files, state.size, state.id)
            for state in self.changed_scopes.values()
        ]
        self._rows.write(self._db)
        if scope_rows:
            self._db.executemany(STATEMENTS["update_scope"], scope_rows)

    def _check_stored_contents(self) -> None:
        if not self._stored_contents:
            return
        ids = json.dumps(list(self._stored_contents))
        if missing := self._db.execute(STATEMENTS["missing_content"], (ids,)).fetchone():
            raise CorruptContent(f"content {missing[0]} is gone")

    def _conflict(self, commit: Commit) -> ExpectationFailed | None:
        if commit.unchanged_paths and not self._are_paths_unchanged(commit.unchanged_paths):
            return ExpectationFailed(commit.unchanged_paths)
        for expect in commit.expects:
            head = self._head(expect.scope, expect.path)
            if not expect.holds(head):
                return ExpectationFailed(expect, head)
        return self.records.conflict(commit)

    def _head(self, scope: Scope, path: Path) -> Head | None:
        key = (scope, path)
        head = self._heads.get(key) or self._reader_heads.get(key)
        if head is not None or key in self._heads or key in self._reader_heads:
            return head
        id = self.scope_state(scope).id
        row = id and self._db.execute(STATEMENTS["head"], (id, path.text)).fetchone()
        head = self._heads[key] = head_from_row(row) if row else None
        return head

    def _is_live(self, scope: Scope, path: Path) -> bool:
        """Whether the path is a file or a directory of its own."""
        head = self._head(scope, path)
        return head is not None and head.is_live

    def _is_file(self, scope: Scope, path: Path) -> bool:
        head = self._head(scope, path)
        return head is not None and head.entry is not None

    def _all_live(self, writes: Sequence[Write]) -> bool:
        for write in writes:
            head = self._head(write.scope, write.path)
            if head is None or head.entry is None:
                return False
        return True

    def _path_occupied(self, commit: Commit) -> PathOccupied | None:
        if not commit.path_checks:
            return None
        deleted = {(write.scope, write.path) for write in commit.writes if write.is_deletion}
        for path_check in commit.path_checks:
            if occupant := self._find_occupant(path_check, deleted):
                return PathOccupied(path_check, occupant)
        return None

    def _find_occupant(
        self, path_check: ExpectPathFree, deleted: AbstractSet[HeadKey]
    ) -> Path | None:
        path, scopes = path_check.path, path_check.scopes
        if self._is_file(scopes[0], path):
            return None
        for scope in scopes:
            for parent in path.parents:
                if self._is_file(scope, parent) and (scope, parent) not in deleted:
                    return parent
            is_directory = self._is_live(scope, path) and not self._is_file(scope, path)
            if is_directory and (scope, path) not in deleted:
                return path
            if occupant := self._first_live_below(scope, path, deleted):
                return occupant
        return self._find_listed(path_check, deleted) if path_check.reads_listing else None

    def _find_listed(self, check: ExpectPathFree, deleted: AbstractSet[HeadKey]) -> Path | None:
        """Read many scopes, after writing the rows of the transaction's earlier commits."""
        self._write_rows()
        return first_occupant(list_occupants(self._db, check), deleted)

    def _are_paths_unchanged(self, check: ExpectPathsUnchanged) -> bool:
        self._write_rows()
        self._cache.load_scope_states(self._db, check.revisions)
        return are_paths_unchanged(self._db, check, self._cache.scope_states)

    def _first_live_below(
        self, scope: Scope, directory: Path, deleted: AbstractSet[HeadKey]
    ) -> Path | None:
        """Return the first live path in a directory that is not deleted.

        Includes this transaction's changes.
        """
        changed = self._changed_below.get((scope, directory), ())
        live = (path for path in changed if self._is_live(scope, path))
        first_changed = min((path for path in live if (scope, path) not in deleted), default=None)
        id, text = self.scope_state(scope).id, directory.text
        for [text_below] in self._db.execute(
            STATEMENTS["heads_below_path"], (id, f"{text}/", f"{text}0")
        ):
            path = Path(text_below)
            if (scope, path) in deleted:
                continue
            if (scope, path) not in self.written_heads or self._is_live(scope, path):
                return path if first_changed is None else min(first_changed, path)
        return first_changed

    def _record_below(self, scope: Scope, path: Path) -> None:
        for parent in path.parents:
            self._changed_below.setdefault((scope, parent), []).append(path)

    def _quota_exceeded(
        self, quotas: Iterable[Quota], writes: Sequence[Write]
    ) -> QuotaExceeded | None:
        for quota in quotas:
            if quota.max_bytes is None and self._all_live(writes):
                continue  # no file is added
            final = {write.path: write.entry for write in writes if write.scope == quota.scope}
            before = {path: self._head(quota.scope, path) for path in final}
            state = self.scope_state(quota.scope)
            if exceeded := check_quota(quota, state, final, before):
                return exceeded
        return None

    def _advance_revision(self, scope: Scope) -> ScopeState:
        state = self.changed_scopes[scope] = self.ensure_scope(scope)
        state.revision += 1
        return state

    def _write(self, write: Write, state: ScopeState, commit: Commit) -> Head:
        scope, path, at, run = write.scope, write.path, commit.at, commit.run
        id, revision, text = state.id, state.revision, path.text
        previous = self._head(scope, path)
        version, before, offset = 1, None, write.version_offset
        if previous is not None:
            version, before = previous.version + 1, previous.entry
            offset = max(offset, previous.version_offset)
        entry, columns = self._store_state(write, at)
        if entry is None or before is None:
            state.files += count_files(entry) - count_files(before)
            self._record_below(scope, path)
        state.size += count_bytes(entry) - count_bytes(before)
        file_id = stored_file_id(write, previous)
        facts = (write.directory, file_id, write.reviewed)
        head = Head(path, version, revision, at, entry, offset, *facts)
        key = (scope, path)
        self._heads[key] = self.written_heads[key] = head
        attributes = (write.directory if entry is None else entry.attributes) or _NO_ATTRIBUTES
        columns = (*columns, offset, attributes.mode, attributes.mtime_ns, file_id, write.reviewed)
        row = (id, text, version, revision, at, *columns)
        self._rows.entries[id, text] = row
        source = write.source and source_to_text(write.source)
        self._rows.versions.append((*row, commit.author, commit.reason, run, source))
        if version > commit.max_versions:
            self._rows.prunes.append((id, text, version - commit.max_versions))
        payload = f'{{"path":{quoted(text)},"version":{version + offset}}}'
        sequence = self.next_run_sequence(run, scope.tenant, at) if run else None
        self.add_event(scope.tenant, id, run, sequence, (WORKSPACE_UPDATED, payload, at))
        return head

    def _store_state(self, write: Write, at: TimestampMs) -> tuple[Entry | None, Row]:
        """Return the stored entry, if the write has one, and its columns."""
        if write.entry is not None:
            return self._store_entry(write.entry, at)
        if write.directory is not None:
            return None, (*_TOMBSTONE_COLUMNS[:-1], DIRECTORY_TYPE)
        return None, _TOMBSTONE_COLUMNS

    def _store_entry(self, entry: Entry, at: TimestampMs) -> tuple[Entry, Row]:
        """Return the entry with stored blobs, and its columns as in _TOMBSTONE_COLUMNS."""
        content_blob, base = entry.blob, entry.base
        blob, digest = self._store_blob(content_blob, at)
        if base is not None:
            base = blob if base is content_blob else self._store_blob(base, at)[0]
        stored = Entry(blob, base, entry.type, entry.attributes)
        return stored, (
            blob.storage_ref,
            digest,
            blob.size,
            base.storage_ref if base else None,
            entry.type,
        )

    def _store_blob(self, blob: Blob, at: TimestampMs) -> tuple[Blob, bytes]:
        """Return the blob with its row id, new if needed, and its digest in bytes."""
        digest = digest_bytes(blob.digest)
        if isinstance(blob.storage_ref, int):
            self._stored_contents.add(blob.storage_ref)
            return blob, digest
        self._cache.last_content_id += 1
        id = self._cache.last_content_id
        self._rows.contents.append((id, digest, blob.size, at, blob.storage_ref))
        return Blob(blob.digest, blob.size, id), digest

    def _current_head(self, write: Write, commit: Commit) -> Head:
        absent = Head(write.path, 0, self.scope_state(write.scope).revision, commit.at, None)
        return self._head(write.scope, write.path) or absent

    def mark_key(
        self, key: IdempotencyKey | None, versions: Iterable[int], revision: int | None = None
    ) -> None:
        """Mark the key, if any, with the result of its request."""
        if key is not None:
            result = (json.dumps([*versions, *key.result_numbers]), revision)
            parameters = (*result, key.tenant, key.endpoint, key.key)
            self._db.execute(STATEMENTS["commit_idempotency_key"], parameters)
