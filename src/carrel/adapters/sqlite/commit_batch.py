"""Many commits in one transaction: each is checked whole, then its rows are kept for one flush."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.record_changes import RecordChanges
from carrel.adapters.sqlite.rows import Key, Row, digest_bytes, head_of, names
from carrel.adapters.sqlite.writer_cache import ScopeState, WriterCache
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.store.event import UPDATED
from carrel.core.store.tree import (
    Applied,
    Blob,
    Commit,
    Entry,
    ExpectationFailed,
    Head,
    Outcome,
    PathFree,
    PathOccupied,
    Quota,
    QuotaExceeded,
    Write,
    event_drafts,
)

_NOTHING: Final[Row] = (None, None, None, None, None)
"""content, digest, size, base and type of a tombstone."""


class CommitBatch:
    """One transaction being built. Nothing it has accepted is visible before ``flush``."""

    def __init__(
        self, db: sqlite3.Connection, known: WriterCache, heads: Mapping[Key, Head | None]
    ) -> None:
        """``heads`` is what the reader remembers and what cannot have changed meanwhile."""
        self._db = db
        self._known = known
        self._remembered = heads
        self._heads: dict[Key, Head | None] = {}
        self.records = RecordChanges(db, known.shelves)
        self.written: dict[Key, Head] = {}
        self._within: dict[Key, list[Path]] = {}
        """What came or went beneath each directory."""
        self.moved: dict[Scope, ScopeState] = {}
        self._scopes: list[Row] = []
        self._contents: list[Row] = []
        self._versions: list[Row] = []
        self._entries: dict[tuple[int, str], Row] = {}
        self._events: list[Row] = []
        self._prunes: list[Row] = []

    def apply(self, commit: Commit) -> Outcome:
        """Check everything before keeping anything, so that a refusal leaves no trace."""
        if refused := self._conflict(commit) or self._path_occupied(commit.path_checks):
            return refused
        asked = commit.writes
        writes: Sequence[Write] = asked
        if len(asked) != 1 or asked[0].entry is None:
            writes = [w for w in asked if w.entry is not None or self._lives(w.scope, w.path)]
        if full := self._quota_exceeded(commit.quotas, writes):
            return full
        if commit.changes or commit.audit_subjects:
            self.records.apply(commit)
        heads = self._written(writes, commit)
        if len(writes) < len(asked):
            written = {id(w): head for w, head in zip(writes, heads, strict=True)}
            heads = [written.get(id(w)) or self._untouched(w, commit) for w in asked]
        if commit.events or commit.changes:
            self._tell_of(commit)
        if commit.idempotency_key:
            self._mark(commit, heads)
        return Applied(tuple(heads))

    def _written(self, writes: Sequence[Write], commit: Commit) -> list[Head]:
        if len(writes) == 1:
            return [self._write(writes[0], self._advance(writes[0].scope), commit)]
        places = {scope: self._advance(scope) for scope in {w.scope for w in writes}}
        return [self._write(w, places[w.scope], commit) for w in writes]

    def look_ahead(self, commits: Sequence[Commit]) -> None:
        """Read at once all that these are about, which one by one would be a query each."""
        spoken = {(e.scope, e.path) for commit in commits for e in commit.expects}
        spoken |= {(w.scope, w.path) for commit in commits for w in commit.writes}
        self._places({scope for scope, _ in spoken} - self._known.places.keys())
        places = self._known.places
        keys = [k for k in spoken if k not in self._heads and k not in self._remembered]
        if not keys:
            return
        self._heads.update(dict.fromkeys(keys))
        asks = json.dumps([(places[scope].id, path.text) for scope, path in keys])
        for place, *row in self._db.execute(SQL["heads"], (asks,)).fetchall():
            self._heads[keys[place]] = head_of(row)

    def _places(self, scopes: Iterable[Scope]) -> None:
        asked = tuple(scopes)
        self._known.places.update((scope, ScopeState(0, 0, 0, 0)) for scope in asked)
        for place, *found in self._db.execute(SQL["scopes"], (names(asked),)).fetchall():
            self._known.places[asked[place]] = ScopeState(*found)

    def scope_state(self, scope: Scope) -> ScopeState:
        place = self._known.places.get(scope)
        if place is None:
            ask = (scope.tenant, scope.kind, scope.name)
            found = self._db.execute(SQL["scope"], ask).fetchone()
            place = self._known.places[scope] = ScopeState(*(found or (0, 0, 0, 0)))
        return place

    def settled(self, scope: Scope) -> ScopeState:
        """The scope with a row of its own."""
        place = self.scope_state(scope)
        if not place.id:
            self._known.scope += 1
            place.id = self._known.scope
            self._scopes.append((place.id, scope.tenant, scope.kind, scope.name))
        return place

    def add_event(
        self,
        tenant: str,
        scope: int | None,
        run: str | None,
        sequence: int | None,
        told: tuple[str, str, TimestampMs],
    ) -> None:
        """Log an event, told as its type, its payload in JSON and its moment."""
        self._known.event += 1
        self._events.append((self._known.event, tenant, scope, run, sequence, *told))

    def _tell_of(self, commit: Commit) -> None:
        """Log what a commit wants told."""
        run = commit.run
        for event in event_drafts(commit):
            sequence = self.next_in_run(run, event.tenant) if run else None
            told = (event.type, json.dumps(event.payload, ensure_ascii=False), commit.at)
            self.add_event(event.tenant, None, run, sequence, told)

    def next_in_run(self, run: str, tenant: str) -> int | None:
        found = self._db.execute(SQL["next_in_run"], (run, tenant)).fetchone()
        return found[0] if found else None

    def flush(self) -> None:
        moved = [(p.revision, p.files, p.size, p.id) for p in self.moved.values()]
        for statement, rows in (
            ("add_scope", self._scopes),
            ("add_content", self._contents),
            ("add_version", self._versions),
            ("set_entry", self._entries.values()),
            ("add_event", self._events),
            ("prune_version", self._prunes),
            ("move_scope", moved),
        ):
            if rows:
                self._db.executemany(SQL[statement], rows)
        self.records.flush()

    def _conflict(self, commit: Commit) -> ExpectationFailed | None:
        for expect in commit.expects:
            found = self._head(expect.scope, expect.path)
            if not expect.holds(found):
                return ExpectationFailed(expect, found)
        return self.records.conflict(commit)

    def _head(self, scope: Scope, path: Path) -> Head | None:
        key = (scope, path)
        head = self._heads.get(key) or self._remembered.get(key)
        if head is not None or key in self._heads or key in self._remembered:
            return head
        id = self.scope_state(scope).id
        row = id and self._db.execute(SQL["head"], (id, path.text)).fetchone()
        head = self._heads[key] = head_of(row) if row else None
        return head

    def _lives(self, scope: Scope, path: Path) -> bool:
        head = self._head(scope, path)
        return head is not None and head.entry is not None

    def _all_live(self, writes: Sequence[Write]) -> bool:
        for write in writes:
            head = self._head(write.scope, write.path)
            if head is None or head.entry is None:
                return False
        return True

    def _path_occupied(self, rooms: Sequence[PathFree]) -> PathOccupied | None:
        for room in rooms:
            if author := self._in_the_way(room):
                return PathOccupied(room, author)
        return None

    def _in_the_way(self, room: PathFree) -> Path | None:
        path, scopes = room.path, room.scopes
        if self._lives(scopes[0], path):
            return None
        for scope in scopes:
            for parent in path.parents:
                if self._lives(scope, parent):
                    return parent
            if author := self._beneath(scope, path):
                return author
        return None

    def _beneath(self, scope: Scope, directory: Path) -> Path | None:
        """The first that lives in a directory, as this transaction has it so far."""
        changed = self._within.get((scope, directory), ())
        first = min((path for path in changed if self._lives(scope, path)), default=None)
        id, text = self.scope_state(scope).id, directory.text
        for [found] in self._db.execute(SQL["beneath"], (id, f"{text}/", f"{text}0")):
            path = Path(found)
            if (scope, path) not in self.written or self._lives(scope, path):
                return path if first is None else min(first, path)
        return first

    def _add_within(self, scope: Scope, path: Path) -> None:
        for parent in path.parents:
            self._within.setdefault((scope, parent), []).append(path)

    def _quota_exceeded(
        self, quotas: Iterable[Quota], writes: Sequence[Write]
    ) -> QuotaExceeded | None:
        for quota in quotas:
            if quota.size is None and self._all_live(writes):
                continue  # nothing is added, so nothing can be too many
            final = {w.path: w.entry for w in writes if w.scope == quota.scope}
            before = {path: self._head(quota.scope, path) for path in final}
            files = sum(_count(final[p]) - _count(_said(h)) for p, h in before.items())
            size = sum(_size(final[p]) - _size(_said(h)) for p, h in before.items())
            place = self.scope_state(quota.scope)
            crowded = files > 0 and place.files + files > quota.files
            heavy = quota.size is not None and size > 0 and place.size + size > quota.size
            if crowded or heavy:
                return QuotaExceeded(quota, place.files + files, place.size + size)
        return None

    def _advance(self, scope: Scope) -> ScopeState:
        place = self.moved[scope] = self.settled(scope)
        place.revision += 1
        return place

    def _write(self, write: Write, place: ScopeState, commit: Commit) -> Head:
        scope, path, at, run = write.scope, write.path, commit.at, commit.run
        id, revision, text = place.id, place.revision, path.text
        was = self._head(scope, path)
        version, before = (was.version + 1, was.entry) if was else (1, None)
        entry, columns = (None, _NOTHING) if write.entry is None else self._stored(write.entry, at)
        if entry is None or before is None:
            place.files += _count(entry) - _count(before)
            self._add_within(scope, path)
        place.size += _size(entry) - _size(before)
        head = Head(path, version, revision, at, entry)
        key = (scope, path)
        self._heads[key] = self.written[key] = head
        row = (id, text, version, revision, at, *columns)
        self._entries[id, text] = row
        self._versions.append((*row, commit.author, commit.reason, run))
        if version > commit.max_versions:
            self._prunes.append((id, text, version - commit.max_versions))
        payload = f'{{"path":{quoted(text)},"version":{version}}}'
        sequence = self.next_in_run(run, scope.tenant) if run else None
        self.add_event(scope.tenant, id, run, sequence, (UPDATED, payload, at))
        return head

    def _stored(self, entry: Entry, at: TimestampMs) -> tuple[Entry, Row]:
        """The entry with rows for its bytes; and what it is in columns, as _NOTHING names them."""
        given, base = entry.blob, entry.base
        blob, digest = self._kept(given, at)
        if base is not None:
            base = blob if base is given else self._kept(base, at)[0]
        stored = Entry(blob, base, entry.type)
        return stored, (
            blob.storage_ref,
            digest,
            blob.size,
            base.storage_ref if base else None,
            entry.type,
        )

    def _kept(self, blob: Blob, at: TimestampMs) -> tuple[Blob, bytes]:
        """The blob with a row, its own or else a new one; and its digest in bytes."""
        digest = digest_bytes(blob.digest)
        if isinstance(blob.storage_ref, int):
            return blob, digest
        self._known.content += 1
        id = self._known.content
        self._contents.append((id, digest, blob.size, at, blob.storage_ref))
        return Blob(blob.digest, blob.size, id), digest

    def _untouched(self, write: Write, commit: Commit) -> Head:
        absent = Head(write.path, 0, self.scope_state(write.scope).revision, commit.at, None)
        return self._head(write.scope, write.path) or absent

    def _mark(self, commit: Commit, heads: Sequence[Head]) -> None:
        key = commit.idempotency_key
        assert key
        versions = json.dumps([head.version for head in heads])
        self._db.execute(SQL["mark_receipt"], (versions, key.tenant, key.endpoint, key.key))


def _said(head: Head | None) -> Entry | None:
    return head.entry if head else None


def _count(entry: Entry | None) -> int:
    return 1 if entry else 0


def _size(entry: Entry | None) -> int:
    return entry.blob.size if entry else 0
