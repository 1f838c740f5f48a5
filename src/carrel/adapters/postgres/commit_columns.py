"""Many commits as the columns that ``apply_commits`` takes, and its answer as their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from carrel.adapters.postgres.advisory_locks import (
    RECORDS,
    content_name,
    in_order,
    run_name,
    scope_name,
    shelf_name,
)
from carrel.adapters.postgres.rows import (
    Row,
    columns,
    digest_bytes,
    from_json,
    head_of,
    numbers,
    to_json,
)
from carrel.core.identifiers import Digest, Path, Scope
from carrel.core.search.full_text import index_terms
from carrel.core.store.record import QUIET, RecordType
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
    QuotaExceeded,
    Write,
    event_drafts,
)

_UNHEARD: Final = {"note": True, "quiet": True}
"""What is neither a change of a record nor named by the audit."""


class CommitColumns:
    """Commits on their way to the server. A row refers to another by its place, from 1."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = commits
        self._mine: set[str] = set()
        self._ours: set[str] = set()
        self._scopes: dict[Scope, int] = {}
        self._paths: dict[tuple[Scope, Path], int] = {}
        self._shelves: dict[tuple[str, RecordType], int] = {}
        self._blobs: dict[tuple[Digest, int | None], int] = {}
        self._path_rows: list[Row] = []
        self._path_numbers: list[Row] = []
        self._blob_rows: list[Row] = []
        self._blob_numbers: list[Row] = []
        self._commit_rows: list[Row] = []
        self._commit_numbers: list[Row] = []
        self._expect_numbers: list[Row] = []
        self._shelf_numbers: list[Row] = []
        self._quota_numbers: list[Row] = []
        self._room_numbers: list[Row] = []
        self._rooms: list[PathFree] = []
        self._write_rows: list[Row] = []
        self._write_numbers: list[Row] = []
        self._starts: list[Row] = [(0, 0, 0, 0, 0)]
        for commit in commits:
            self._add(commit)

    def arguments(self) -> list[Any]:
        scopes = [(scope.tenant, scope.kind, scope.name) for scope in self._scopes]
        return [
            *columns(scopes, 3),
            *columns(self._path_rows, 1),
            *columns(list(self._shelves), 2),
            *columns(self._blob_rows, 2),
            *columns(self._commit_rows, 5),
            *columns(self._write_rows, 1),
            *numbers(in_order(self._mine, self._ours), 2),
            *numbers(self._path_numbers, 1),
            *numbers(self._blob_numbers, 2),
            *numbers(self._commit_numbers, 2),
            *numbers(self._starts, 5),
            *numbers(self._expect_numbers, 3),
            *numbers(self._shelf_numbers, 2),
            *numbers(self._quota_numbers, 3),
            *numbers(self._room_numbers, 3),
            *numbers(self._write_numbers, 5),
        ]

    def outcomes(self, answer: Row) -> list[Outcome]:
        what, rows, writes, facts, *heads_and_ids = answer
        heads = self._heads(*heads_and_ids)
        outcomes: list[Outcome] = []
        for n, commit in enumerate(self._commits):
            starts = self._starts[n]
            if what[n] == "a":
                outcomes.append(Applied(tuple(heads[starts[3] : self._starts[n + 1][3]])))
            elif what[n] == "e":
                expect = commit.expects[rows[n] - starts[0] - 1]
                found = heads[writes[n] - 1] if writes[n] else _told(expect.path, facts[n])
                outcomes.append(ExpectationFailed(expect, found))
            elif what[n] == "s":
                outcomes.append(
                    ExpectationFailed(commit.collection_revisions[rows[n] - starts[1] - 1])
                )
            elif what[n] == "c":
                place, handle = from_json(facts[n])
                outcomes.append(ExpectationFailed(commit.changes[place - 1], handle=handle))
            elif what[n] == "r":
                outcomes.append(PathOccupied(self._rooms[rows[n] - 1], Path(from_json(facts[n]))))
            else:
                quota = commit.quotas[rows[n] - starts[2] - 1]
                outcomes.append(QuotaExceeded(quota, *from_json(facts[n])))
        return outcomes

    def _heads(self, versions: Row, revisions: Row, moments: Row, ids: Row) -> list[Head]:
        """What each write became; for those of refused commits, nothing that may be used."""
        writes = (write for commit in self._commits for write in commit.writes)
        heads = []
        for n, write in enumerate(writes):
            entry = write.entry
            if entry is not None:
                _, _, blob, base, _ = self._write_numbers[n]
                kept = Blob(entry.blob.digest, entry.blob.size, ids[blob - 1])
                beneath = entry.base and Blob(entry.base.digest, entry.base.size, ids[base - 1])
                entry = Entry(kept, beneath, entry.type)
            heads.append(Head(write.path, versions[n], revisions[n], moments[n], entry))
        return heads

    def _add(self, commit: Commit) -> None:
        for expect in commit.expects:
            place = self._path(expect.scope, expect.path)
            self._expect_numbers.append((place, expect.version, expect.live))
        for collection_revision in commit.collection_revisions:
            place = self._shelf(collection_revision.tenant, collection_revision.type)
            self._shelf_numbers.append((place, collection_revision.revision))
        for quota in commit.quotas:
            self._quota_numbers.append((self._scope(quota.scope), quota.files, quota.size))
        for room in commit.path_checks:
            self._add_room(room)
        self._add_writes(commit.writes)
        self._starts.append(
            (
                *(len(self._expect_numbers), len(self._shelf_numbers)),
                *(len(self._quota_numbers), len(self._write_numbers)),
                len(self._room_numbers),
            )
        )
        spoken = commit.changes or commit.audit_subjects or commit.events
        changes = self._changes(commit) if spoken else None
        said = (commit.author, commit.reason, self._run(commit), changes, self._receipt(commit))
        self._commit_rows.append(said)
        self._commit_numbers.append((commit.at, max(commit.max_versions, 1)))

    def _add_room(self, room: PathFree) -> None:
        """A row for each place to look at: a path that must not live, or a scope in which nothing
        may be beneath the path."""
        own = self._path(room.scopes[0], room.path)
        for scope in room.scopes:
            parents = [(own, self._path(scope, parent), None) for parent in room.path.parents]
            self._room_numbers += (*parents, (own, None, self._scope(scope)))
            self._rooms += [room] * (len(parents) + 1)

    def _add_writes(self, writes: Sequence[Write]) -> None:
        number = len(self._commit_rows) + 1
        places = [self._path(write.scope, write.path) for write in writes]
        last = {place: n for n, place in enumerate(places)}
        for n, (write, place) in enumerate(zip(writes, places, strict=True)):
            self._mine.add(scope_name(write.scope))
            entry = write.entry
            blob = entry and self._blob(entry.blob)
            base = entry and entry.base and self._blob(entry.base)
            self._write_rows.append((entry and entry.type,))
            self._write_numbers.append((number, place, blob, base, last[place] == n))

    def _scope(self, scope: Scope) -> int:
        place = self._scopes.get(scope)
        if place is None:
            place = self._scopes[scope] = len(self._scopes) + 1
            self._ours.add(scope_name(scope))
        return place

    def _path(self, scope: Scope, path: Path) -> int:
        place = self._paths.get((scope, path))
        if place is None:
            self._path_rows.append((path.text,))
            self._path_numbers.append((self._scope(scope),))
            place = self._paths[scope, path] = len(self._path_rows)
        return place

    def _shelf(self, tenant: str, record_type: RecordType) -> int:
        place = self._shelves.get((tenant, record_type))
        if place is None:
            place = self._shelves[tenant, record_type] = len(self._shelves) + 1
            self._ours.add(shelf_name(tenant, record_type))
        return place

    def _blob(self, blob: Blob) -> int:
        ref = blob.storage_ref if isinstance(blob.storage_ref, int) else None
        place = self._blobs.get((blob.digest, ref))
        if place is None:
            body = blob.storage_ref if ref is None else None
            self._blob_rows.append((digest_bytes(blob.digest), body))
            self._blob_numbers.append((ref, blob.size))
            place = self._blobs[blob.digest, ref] = len(self._blob_rows)
            if ref is not None:
                self._ours.add(content_name(ref))
        return place

    def _run(self, commit: Commit) -> str | None:
        if commit.run is not None:
            self._mine.add(run_name(commit.run))
        return commit.run

    def _changes(self, commit: Commit) -> str:
        """The changes of records, then what the audit is to name besides, then what is told.

        The lock of all records is not for the quiet ones: what handles these have begin with their
        tenant and noun, and the shelf's own lock is theirs.
        """
        changes = commit.changes
        if any(change.type not in QUIET for change in changes):
            self._mine.add(RECORDS)
        self._mine.update(shelf_name(change.tenant, change.type) for change in changes)
        names = [name.partition("/") for name in commit.audit_subjects]
        return to_json(
            [
                {
                    "tenant": change.tenant,
                    "noun": change.type,
                    "id": change.id,
                    "body": None if change.body is None else to_json(change.body),
                    "expected": change.expected,
                    "handles": () if change.body is None else change.unique_keys,
                    "links": change.index_keys,
                    "words": () if change.body is None else index_terms(change.type, change.body),
                    "quiet": change.type in QUIET,
                }
                for change in changes
            ]
            + [
                {
                    "tenant": commit.writes[0].scope.tenant,
                    "noun": record_type,
                    "id": id,
                    "note": True,
                }
                for record_type, _, id in names
            ]
            + [
                {"tenant": one.tenant, "tell": one.type, "payload": to_json(one.payload)} | _UNHEARD
                for one in event_drafts(commit)
            ]
        )

    def _receipt(self, commit: Commit) -> str | None:
        key = commit.idempotency_key
        if key is None:
            return None
        self._mine.add(f"receipt/{key.tenant}/{key.endpoint}/{key.key}")
        return to_json((key.tenant, key.endpoint, key.key))


def _told(path: Path, facts: str | None) -> Head | None:
    if facts is None:
        return None
    row = from_json(facts)
    for place in (4, 8):
        row[place] = row[place] and bytes.fromhex(row[place])
    return head_of(path, row, 0)
