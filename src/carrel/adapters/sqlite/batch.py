"""Many commits in one transaction: each is checked whole, then its rows are kept for one flush."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from carrel.adapters.sqlite.changes import RecordChanges
from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Learnt
from carrel.adapters.sqlite.rows import Key, Row, digest_bytes, head_of, key_of, place_of
from carrel.core.event import UPDATED
from carrel.core.names import Moment, Path, Scope
from carrel.core.tree import (
    Applied,
    Blob,
    Commit,
    Conflict,
    Entry,
    Full,
    Head,
    Outcome,
    Quota,
    Write,
)


@dataclass(slots=True)
class Place:
    """A scope as this transaction has it so far; ``id`` 0 means that it has no row yet."""

    id: int
    revision: int
    files: int
    size: int
    heads: dict[str, Head | None] = field(default_factory=dict)
    """What it says now of the paths that were looked at."""


class Batch:
    """One transaction being built. Nothing it has accepted is visible before ``flush``."""

    def __init__(self, db: sqlite3.Connection, known: Mapping[Key, Head | None]) -> None:
        """``known`` is what the reader remembers and what cannot have changed meanwhile."""
        self._db = db
        self._known = known
        self.records = RecordChanges(db)
        self._places: dict[Scope, Place] = {}
        self._moved: set[Scope] = set()
        self._written: dict[Key, Head] = {}
        counters = dict(db.execute(SQL["counters"]).fetchall())
        self._content, self._event = counters.get("content", 0), counters.get("event", 0)
        self._started = self._content, self._event
        self._contents: list[Row] = []
        self._versions: list[Row] = []
        self._entries: dict[tuple[int, str], Row] = {}
        self._events: list[Row] = []
        self._prunes: list[Row] = []

    def apply(self, commit: Commit) -> Outcome:
        """Check everything before keeping anything, so that a refusal leaves no trace."""
        if refused := self._conflict(commit):
            return refused
        writes = [w for w in commit.writes if w.entry or self._lives(w.scope, w.path)]
        if full := self._full(commit.quotas, writes):
            return full
        self.records.apply(commit)
        revisions = {scope: self._advance(scope) for scope in {w.scope for w in writes}}
        written = {id(w): self._write(w, revisions[w.scope], commit) for w in writes}
        heads = tuple(written.get(id(w)) or self._untouched(w, commit) for w in commit.writes)
        if commit.receipt:
            self._mark(commit, heads)
        return Applied(heads)

    def place(self, scope: Scope) -> Place:
        place = self._places.get(scope)
        if place is None:
            found = self._db.execute(
                SQL["scope"], (scope.tenant, scope.kind, scope.name)
            ).fetchone()
            place = self._places[scope] = Place(*(found or (0, 0, 0, 0)))
        return place

    def settled(self, scope: Scope) -> Place:
        """The scope with a row of its own."""
        place = self.place(scope)
        if not place.id:
            row = (scope.tenant, scope.kind, scope.name)
            [place.id] = self._db.execute(SQL["add_scope"], row).fetchone()
        return place

    def tell(
        self,
        tenant: str,
        scope: int | None,
        run: str | None,
        sequence: int | None,
        told: tuple[str, str, Moment],
    ) -> None:
        """Log an event, told as its type, its payload in JSON and its moment."""
        self._event += 1
        self._events.append((self._event, tenant, scope, run, sequence, *told))

    def next_in_run(self, run: str, tenant: str) -> int | None:
        found = self._db.execute(SQL["next_in_run"], (run, tenant)).fetchone()
        return found[0] if found else None

    def learnt(self) -> Learnt:
        """What is true once this is committed."""
        moved = {scope: self._places[scope] for scope in self._moved}
        return Learnt(
            heads=self._written,
            revisions={place_of(scope): place.revision for scope, place in moved.items()},
            records_changed=self.records.changed,
        )

    def flush(self) -> None:
        many = self._db.executemany
        many(SQL["add_content"], self._contents)
        many(SQL["add_version"], self._versions)
        many(SQL["set_entry"], self._entries.values())
        many(SQL["add_event"], self._events)
        many(SQL["prune_version"], self._prunes)
        moved = (self._places[scope] for scope in self._moved)
        many(SQL["move_scope"], [(p.revision, p.files, p.size, p.id) for p in moved])
        if (self._content, self._event) != self._started:
            values = [("content", self._content), ("event", self._event)]
            many(SQL["set_counter"], values)
        self.records.flush()

    def _conflict(self, commit: Commit) -> Conflict | None:
        for expect in commit.expects:
            found = self._head(expect.scope, expect.path)
            if not expect.holds(found):
                return Conflict(expect, found)
        return self.records.conflict(commit)

    def _head(self, scope: Scope, path: Path) -> Head | None:
        place, text = self.place(scope), path.text
        if text not in place.heads:
            place.heads[text] = self._found(scope, path, place.id)
        return place.heads[text]

    def _found(self, scope: Scope, path: Path, id: int) -> Head | None:
        key = key_of(scope, path)
        if key in self._known:
            return self._known[key]
        row = id and self._db.execute(SQL["head"], (id, path.text)).fetchone()
        return head_of(row) if row else None

    def _lives(self, scope: Scope, path: Path) -> bool:
        head = self._head(scope, path)
        return head is not None and head.entry is not None

    def _full(self, quotas: Iterable[Quota], writes: Sequence[Write]) -> Full | None:
        for quota in quotas:
            if quota.size is None and all(self._lives(w.scope, w.path) for w in writes):
                continue  # nothing is added, so nothing can be too many
            final = {w.path: w.entry for w in writes if w.scope == quota.scope}
            before = {path: self._head(quota.scope, path) for path in final}
            files = sum(_count(final[p]) - _count(_said(h)) for p, h in before.items())
            size = sum(_size(final[p]) - _size(_said(h)) for p, h in before.items())
            place = self.place(quota.scope)
            crowded = files > 0 and place.files + files > quota.files
            heavy = quota.size is not None and size > 0 and place.size + size > quota.size
            if crowded or heavy:
                return Full(quota, place.files + files, place.size + size)
        return None

    def _advance(self, scope: Scope) -> int:
        place = self.settled(scope)
        place.revision += 1
        self._moved.add(scope)
        return place.revision

    def _write(self, write: Write, revision: int, commit: Commit) -> Head:
        place, path = self._places[write.scope], write.path
        was = place.heads[path.text] if path.text in place.heads else self._head(write.scope, path)
        version = (was.version if was else 0) + 1
        entry = write.entry and self._stored(write.entry, commit.at)
        place.files += _count(entry) - _count(_said(was))
        place.size += _size(entry) - _size(_said(was))
        head = Head(path, version, revision, commit.at, entry)
        place.heads[path.text] = head
        row = (place.id, path.text, version, revision, commit.at, *_columns(entry))
        self._entries[place.id, path.text] = row
        self._written[key_of(write.scope, path)] = head
        self._versions.append((*row, commit.by, commit.why, commit.run))
        if version > commit.keep:
            self._prunes.append((place.id, path.text, version - commit.keep))
        payload = f'{{"path":{json.dumps(path.text)},"version":{version}}}'
        sequence = self.next_in_run(commit.run, write.scope.tenant) if commit.run else None
        told = (UPDATED, payload, commit.at)
        self.tell(write.scope.tenant, place.id, commit.run, sequence, told)
        return head

    def _stored(self, entry: Entry, at: Moment) -> Entry:
        blob = self._kept(entry.blob, at)
        base = blob if entry.base is entry.blob else entry.base and self._kept(entry.base, at)
        return Entry(blob, base, entry.type)

    def _kept(self, blob: Blob, at: Moment) -> Blob:
        """The blob with a row: its own where it has one, else a new one."""
        if isinstance(blob.ref, int):
            return blob
        self._content += 1
        self._contents.append((self._content, digest_bytes(blob.digest), blob.size, at, blob.ref))
        return Blob(blob.digest, blob.size, self._content)

    def _untouched(self, write: Write, commit: Commit) -> Head:
        absent = Head(write.path, 0, self.place(write.scope).revision, commit.at, None)
        return self._head(write.scope, write.path) or absent

    def _mark(self, commit: Commit, heads: Sequence[Head]) -> None:
        key = commit.receipt
        assert key
        versions = json.dumps([head.version for head in heads])
        self._db.execute(SQL["mark_receipt"], (versions, key.tenant, key.endpoint, key.key))


def _said(head: Head | None) -> Entry | None:
    return head.entry if head else None


def _count(entry: Entry | None) -> int:
    return 1 if entry else 0


def _size(entry: Entry | None) -> int:
    return entry.blob.size if entry else 0


def _columns(entry: Entry | None) -> tuple[Any, ...]:
    """content, digest, size, base and type, as version and entry rows end."""
    if entry is None:
        return (None, None, None, None, None)
    blob, base = entry.blob, entry.base
    return (blob.ref, digest_bytes(blob.digest), blob.size, base.ref if base else None, entry.type)
