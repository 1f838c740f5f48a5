"""Consistency check of a whole store, row by row.

Tables are read in the order of PHASES, rows ordered by key. Only numbers are kept in memory
(fingerprints of ids, revisions, contents), so stores with millions of files can be checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from carrel.core.identifiers import ScopeKind, TimestampMs
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.id_counts import IdCounts
from carrel.core.maintenance.tables import COLUMNS, KEY_LENGTHS
from carrel.core.maintenance.transcript_check import TranscriptCheck
from carrel.core.maintenance.tree_check import ContentUsage, RetentionPolicy, Row, TreeCheck
from carrel.core.policy import Limits, Policy
from carrel.core.runs import Audience, RunStatus
from carrel.core.store.record import RecordType
from carrel.core.webhooks import DeliveryState

TREE_TABLES: Final = ("scope", "entry", "version")
PHASES: Final[tuple[tuple[str, ...], ...]] = (
    *(("counter",), ("collection_revision",), ("record",), ("unique_key",), ("index_key",)),
    *(("scope",), ("run",), ("run_layer",), ("content",), TREE_TABLES, ("event",), ("audit",)),
    *(
        ("audit_key",),
        ("key_usage",),
        ("idempotency_key",),
        ("delivery",),
        ("attempt",),
        ("delivery_cursor",),
    ),
    *(("session",), ("session_entry",), ("recall",)),
)
"""Order of the tables. The tables of TREE_TABLES are read merged by key."""

_ALLOWED_TYPES: Final[Mapping[str, tuple[frozenset[type], ...]]] = {
    table: tuple(frozenset(get_args(kind) or (kind,)) for kind in columns.values())
    for table, columns in COLUMNS.items()
}
_SCOPE_KINDS: Final = frozenset(ScopeKind)
_RECORD_TYPES: Final = frozenset(RecordType)


class StoreCheck:
    """Receives every row once (scopes twice) and collects findings.

    Content younger than `grace` milliseconds before `now` may still be unreferenced.
    """

    def __init__(self, now: TimestampMs, grace: int) -> None:
        self.findings = FindingList()
        self.external_blobs: dict[bytes, int] = {}
        """Contents outside the database: digest → size."""
        self._grace_start = now - grace
        self._valid_row_types: dict[str, set[tuple[type, ...]]] = {
            table: set() for table in COLUMNS
        }
        self._last_keys: dict[str, tuple[Any, ...]] = {}
        self._counters: dict[str, int] = {}
        self._max_ids = {"content": 0, "event": 0}
        self._collections: set[int] = set()
        self._records: set[int] = set()
        self._retention: dict[str, RetentionPolicy] = {}
        self._scopes = IdCounts()
        self._runs: dict[int, int] = {}
        self._run_revisions: dict[int, set[int]] = {}
        self._deliveries: set[int] = set()
        self._contents = ContentUsage()
        self._trees = TreeCheck(self.findings, self._contents, self._retention, self._run_revisions)
        self._transcripts = TranscriptCheck(self.findings)
        self._checks: Mapping[str, Callable[[Row], None]] = {
            "counter": self._check_counter,
            "collection_revision": self._check_collection_revision,
            "record": self._check_record,
            "unique_key": self._check_unique_key,
            "index_key": self._check_index_key,
            "scope": self._check_scope,
            "run": self._check_run,
            "run_layer": self._check_run_layer,
            "content": self._check_content,
            "event": self._check_event,
            "delivery": self._check_delivery,
            "attempt": self._check_attempt,
            "delivery_cursor": self._check_delivery_cursor,
            **self._transcripts.checks,
        }

    def check_rows(self, table: str, rows: Sequence[Row]) -> None:
        check = self._checks.get(table, _skip_row)
        for row in rows:
            if self._has_valid_types(table, row) and self._has_ordered_key(table, row):
                check(row)

    def check_trees(self, merged_rows: Sequence[tuple[str, Row]]) -> None:
        """Check merged rows: a scope, then its entries, each before its versions."""
        for table, row in merged_rows:
            if table == "scope":
                if self._scopes[row[0]]:
                    self._trees.check_scope(row)
            elif self._has_valid_types(table, row) and self._has_ordered_key(table, row):
                (self._trees.check_entry if table == "entry" else self._trees.check_version)(row)

    def finish(self) -> FindingList:
        self._trees.finish()
        self._transcripts.finish()
        for name, max_id in self._max_ids.items():
            if self._counters.get(name, 0) < max_id:
                text = f"is {self._counters.get(name, 0)}, less than the used id {max_id}"
                self.findings.error(f"counter {name}", text)
        if self._collections and not self._counters.get("records"):
            self.findings.error("counter records", "is 0 although records exist")
        if unused := self._contents.count_unused():
            rows = "1 row is" if unused == 1 else f"{unused} rows are"
            text = f"{rows} unreferenced; run carrel gc"
            self.findings.warn("content", text)
        return self.findings

    def _has_valid_types(self, table: str, row: Row) -> bool:
        """Whether the row's values have the types of their columns."""
        row_types = tuple(map(type, row))
        if row_types in self._valid_row_types[table]:
            return True
        allowed = _ALLOWED_TYPES[table]
        if len(row_types) != len(allowed) or any(
            kind not in kinds for kind, kinds in zip(row_types, allowed, strict=True)
        ):
            self.findings.error(
                f"{table} {_format_key(table, row)}", "a column has an unexpected type"
            )
            return False
        self._valid_row_types[table].add(row_types)
        return True

    def _has_ordered_key(self, table: str, row: Row) -> bool:
        key, last = tuple(row[: KEY_LENGTHS[table]]), self._last_keys.get(table)
        self._last_keys[table] = key
        if last is None or last < key:
            return True
        text = "is a duplicate" if last == key else "is out of key order"
        self.findings.error(f"{table} {_format_key(table, row)}", text)
        return False

    def _check_counter(self, row: Row) -> None:
        self._counters[row[0]] = row[1]

    def _check_collection_revision(self, row: Row) -> None:
        tenant, record_type, revision = row
        self._collections.add(hash((tenant, record_type)))
        if revision < 1:
            self.findings.error(f"collection revision {record_type} of {tenant}", "has no revision")

    def _check_record(self, row: Row) -> None:
        tenant, record_type, id, revision, body, _, updated_at = row
        subject = f"{record_type} {id} of {tenant}"
        self._records.add(hash((tenant, record_type, id)))
        if record_type not in _RECORD_TYPES:
            self.findings.error(subject, "has an unknown record type")
        if hash((tenant, record_type)) not in self._collections:
            self.findings.error(subject, "its collection revision is missing")
        if revision < 1:
            self.findings.error(subject, "has no revision")
        parsed = _parse_object(body)
        if parsed is None:
            self.findings.error(subject, "its body is not a JSON object")
        elif record_type == RecordType.POLICY:
            self._retention[tenant] = RetentionPolicy(_parse_policy(parsed), updated_at)

    def _check_unique_key(self, row: Row) -> None:
        name, *record_key = row
        if hash(tuple(record_key)) not in self._records:
            text = f"refers to a missing {record_key[1]}: {record_key[2]}"
            self.findings.error(f"unique key {_without_value(name)}", text)

    def _check_index_key(self, row: Row) -> None:
        tenant, record_type, name, id = row
        if hash((tenant, record_type, id)) not in self._records:
            self.findings.error(
                f"index key {name} of {tenant}", f"refers to a missing {record_type}: {id}"
            )

    def _check_scope(self, row: Row) -> None:
        id, tenant, kind, name, revision = row[:5]
        if kind not in _SCOPE_KINDS:
            self.findings.error(f"{kind} {name} of {tenant}", "has an unknown scope kind")
        elif revision < 0 or id < 1:
            self.findings.error(f"{kind} {name} of {tenant}", "has no revision")
        else:
            self._scopes[id] = revision + 1

    def _check_run(self, row: Row) -> None:
        id, _, scope, _, mode, status = row[:6]
        snapshot_kept, variables, event_count = row[11:14]
        self._runs[hash(id)] = event_count << 1 | bool(snapshot_kept)
        if not self._scopes[scope]:
            self.findings.error(f"run {id}", f"refers to the missing scope {scope}")
        if status not in set(RunStatus) or mode not in set(Audience) or snapshot_kept not in {0, 1}:
            self.findings.error(f"run {id}", "has an invalid status, mode or kept flag")
        if _parse_object(variables) is None:
            self.findings.error(f"run {id}", "its variables are not a JSON object")

    def _check_run_layer(self, row: Row) -> None:
        run, position, scope, revision = row
        subject = f"layer {position} of run {run}"
        run_state = self._runs.get(hash(run))
        if run_state is None:
            self.findings.error(subject, "the run is missing")
        elif not run_state & 1:
            self.findings.error(subject, "the run was released but still has layers")
        if not self._scopes[scope]:
            self.findings.error(subject, f"refers to the missing scope {scope}")
        elif not 0 <= revision < self._scopes[scope]:
            self.findings.error(
                subject, f"has revision {revision}, which the scope has not reached"
            )
        else:
            self._run_revisions.setdefault(scope, set()).add(revision)

    def _check_content(self, row: Row) -> None:
        id, digest, size, created_at, body = row
        self._max_ids["content"] = id
        self._contents.add(id, digest, size, used=created_at >= self._grace_start)
        if body is None:
            if self.external_blobs.setdefault(digest, size) != size:
                self.findings.error(
                    f"content {id}", "another row with this digest has a different size"
                )
        elif len(body) != size or hashlib.sha256(body).digest() != digest:
            text = f"its bytes do not match sha256:{digest.hex()}"
            self.findings.error(f"content {id}", text)

    def _check_event(self, row: Row) -> None:
        id, _, scope, run, sequence, _, payload, _ = row
        self._max_ids["event"] = id
        if scope is not None and not self._scopes[scope]:
            self.findings.error(f"event {id}", f"refers to the missing scope {scope}")
        if sequence is not None and sequence > self._runs.get(hash(run), 0) >> 1:
            self.findings.error(f"event {id}", f"has a sequence beyond the log of run {run}")
        if _parse_object(payload) is None:
            self.findings.error(f"event {id}", "its payload is not a JSON object")

    def _check_delivery(self, row: Row) -> None:
        id, state = row[0], row[5]
        self._deliveries.add(hash(id))
        if state not in set(DeliveryState):
            self.findings.error(f"delivery {id}", "has an unknown state")

    def _check_attempt(self, row: Row) -> None:
        if hash(row[0]) not in self._deliveries:
            self.findings.error(f"attempt {row[1]} of {row[0]}", "the delivery is missing")

    def _check_delivery_cursor(self, row: Row) -> None:
        name, cursor = row
        if not (cursor.isascii() and cursor.isdigit()):
            self.findings.error(f"delivery cursor {name}", "is not an event id")
        elif int(cursor) > self._counters.get("event", 0):
            self.findings.error(f"delivery cursor {name}", "is past the last event")


def _skip_row(_: Row) -> None:
    """Tables without references need no check."""


def _format_key(table: str, row: Row) -> str:
    return " ".join(_without_value(str(part)) for part in row[: KEY_LENGTHS[table]])


def _without_value(name: str) -> str:
    """Name without the part after the colon, which may be a hash or an address."""
    return name.partition(":")[0]


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _parse_policy(body: Mapping[str, Any]) -> Policy:
    defaults = Policy()
    return Policy(
        limits=_parse_limits(body.get("limits"), defaults.limits),
        shared_limits=_parse_limits(body.get("sharedLimits"), defaults.shared_limits),
    )


def _parse_limits(body: Any, defaults: Limits) -> Limits:
    max_versions = body.get("maxVersions") if isinstance(body, dict) else None
    return (
        replace(defaults, max_versions=max_versions) if isinstance(max_versions, int) else defaults
    )
