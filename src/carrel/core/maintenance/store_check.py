"""Examining a whole store, row by row: whether everything in it still agrees with everything else.

Rows come table by table in the order of PHASES, each by its key. What is remembered of them is
numbers: fingerprints of ids, revisions, the contents there are. Hence a store of millions of files
is examined in the memory of a few numbers each.
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
from carrel.core.maintenance.tables import COLUMNS, KEYS
from carrel.core.maintenance.transcript_check import TranscriptCheck
from carrel.core.maintenance.tree_check import ContentUsage, RetentionPolicy, Row, TreeCheck
from carrel.core.policy import Limits, Policy
from carrel.core.runs import Audience, RunStatus
from carrel.core.store.record import RecordType
from carrel.core.webhooks import DeliveryState

TREES: Final = ("scope", "entry", "version")
PHASES: Final[tuple[tuple[str, ...], ...]] = (
    *(("counter",), ("shelf",), ("record",), ("handle",), ("link",), ("scope",), ("run",)),
    *(("run_layer",), ("content",), TREES, ("event",), ("audit",), ("usage",), ("receipt",)),
    *(("delivery",), ("attempt",), ("mark",), ("session",), ("utterance",), ("recall",)),
)
"""What is read, in this order; the tables of TREES woven into one by their keys."""

_ALLOWED: Final[Mapping[str, tuple[frozenset[type], ...]]] = {
    table: tuple(frozenset(get_args(kind) or (kind,)) for kind in columns.values())
    for table, columns in COLUMNS.items()
}
_KINDS: Final = frozenset(ScopeKind)
_NOUNS: Final = frozenset(RecordType)


class StoreCheck:
    """Takes every row once (scopes twice), and says what is wrong. ``now`` and ``grace`` tell what
    is young enough to be on its way."""

    def __init__(self, now: TimestampMs, grace: int) -> None:
        self.findings = FindingList()
        self.outside: dict[bytes, int] = {}
        """Bytes that are kept outside: digest → size."""
        self._young = now - grace
        self._forms: dict[str, set[tuple[type, ...]]] = {table: set() for table in COLUMNS}
        self._last: dict[str, tuple[Any, ...]] = {}
        self._counters: dict[str, int] = {}
        self._greatest = {"content": 0, "event": 0}
        self._shelves: set[int] = set()
        self._records: set[int] = set()
        self._keepings: dict[str, RetentionPolicy] = {}
        self._scopes = IdCounts()
        self._runs: dict[int, int] = {}
        self._held: dict[int, set[int]] = {}
        self._deliveries: set[int] = set()
        self._contents = ContentUsage()
        self._trees = TreeCheck(self.findings, self._contents, self._keepings, self._held)
        self._transcripts = TranscriptCheck(self.findings)
        self._looks: Mapping[str, Callable[[Row], None]] = {
            "counter": self._counter,
            "shelf": self._shelf,
            "record": self._record,
            "handle": self._handle,
            "link": self._link,
            "scope": self._scope,
            "run": self._run,
            "run_layer": self._layer,
            "content": self._content,
            "event": self._event,
            "delivery": self._delivery,
            "attempt": self._attempt,
            "mark": self._mark,
            **self._transcripts.looks,
        }

    def look(self, table: str, rows: Sequence[Row]) -> None:
        look = self._looks.get(table, _pass)
        for row in rows:
            if self._sound(table, row) and self._in_order(table, row):
                look(row)

    def look_at_trees(self, woven: Sequence[tuple[str, Row]]) -> None:
        """Rows of TREES with their tables: a scope, its entries, each before its versions."""
        for table, row in woven:
            if table == "scope":
                if self._scopes[row[0]]:
                    self._trees.scope(row)
            elif self._sound(table, row) and self._in_order(table, row):
                (self._trees.entry if table == "entry" else self._trees.version)(row)

    def finish(self) -> FindingList:
        self._trees.finish()
        self._transcripts.finish()
        for name, greatest in self._greatest.items():
            if self._counters.get(name, 0) < greatest:
                text = f"stands at {self._counters.get(name, 0)}, below {greatest}, which is given"
                self.findings.error(f"counter {name}", text)
        if self._shelves and not self._counters.get("records"):
            self.findings.error("counter records", "has never risen, though records have changed")
        if unused := self._contents.unused():
            text = f"nothing refers to {unused} of its rows; carrel gc takes them"
            self.findings.warn("content", text)
        return self.findings

    def _sound(self, table: str, row: Row) -> bool:
        """Whether a row is made of what its columns should hold."""
        form = tuple(map(type, row))
        if form in self._forms[table]:
            return True
        allowed = _ALLOWED[table]
        if len(form) != len(allowed) or any(
            kind not in kinds for kind, kinds in zip(form, allowed, strict=True)
        ):
            self.findings.error(f"{table} {_key(table, row)}", "a row holds what it never should")
            return False
        self._forms[table].add(form)
        return True

    def _in_order(self, table: str, row: Row) -> bool:
        key, last = tuple(row[: KEYS[table]]), self._last.get(table)
        self._last[table] = key
        if last is None or last < key:
            return True
        text = "is there twice" if last == key else "is not where it belongs in the order of keys"
        self.findings.error(f"{table} {_key(table, row)}", text)
        return False

    def _counter(self, row: Row) -> None:
        self._counters[row[0]] = row[1]

    def _shelf(self, row: Row) -> None:
        tenant, record_type, revision = row
        self._shelves.add(hash((tenant, record_type)))
        if revision < 1:
            self.findings.error(f"shelf {record_type} of {tenant}", "has no revision")

    def _record(self, row: Row) -> None:
        tenant, record_type, id, revision, body, _, changed = row
        subject = f"{record_type} {id} of {tenant}"
        self._records.add(hash((tenant, record_type, id)))
        if record_type not in _NOUNS:
            self.findings.error(subject, "is a record of no kind that is known")
        if hash((tenant, record_type)) not in self._shelves:
            self.findings.error(subject, "its shelf is missing")
        if revision < 1:
            self.findings.error(subject, "has no revision")
        said = _parsed(body)
        if said is None:
            self.findings.error(subject, "its body is not a JSON object")
        elif record_type == RecordType.POLICY:
            self._keepings[tenant] = RetentionPolicy(_policy(said), changed)

    def _handle(self, row: Row) -> None:
        name, *of = row
        if hash(tuple(of)) not in self._records:
            text = f"names a {of[1]} that is missing: {of[2]}"
            self.findings.error(f"handle {_shown(name)}", text)

    def _link(self, row: Row) -> None:
        tenant, record_type, name, id = row
        if hash((tenant, record_type, id)) not in self._records:
            self.findings.error(
                f"link {name} of {tenant}", f"names a {record_type} that is missing: {id}"
            )

    def _scope(self, row: Row) -> None:
        id, tenant, kind, name, revision = row[:5]
        if kind not in _KINDS:
            self.findings.error(f"{kind} {name} of {tenant}", "is a scope of no kind that is known")
        elif revision < 0 or id < 1:
            self.findings.error(f"{kind} {name} of {tenant}", "has no revision")
        else:
            self._scopes[id] = revision + 1

    def _run(self, row: Row) -> None:
        id, _, scope, _, mode, status = row[:6]
        kept, variables, events = row[11:]
        self._runs[hash(id)] = events << 1 | bool(kept)
        if not self._scopes[scope]:
            self.findings.error(f"run {id}", f"is of scope {scope}, which is not known")
        if status not in set(RunStatus) or mode not in set(Audience) or kept not in {0, 1}:
            self.findings.error(f"run {id}", "its status, mode or kept is none that is known")
        if _parsed(variables) is None:
            self.findings.error(f"run {id}", "its variables are not a JSON object")

    def _layer(self, row: Row) -> None:
        run, place, scope, revision = row
        subject = f"layer {place} of run {run}"
        known = self._runs.get(hash(run))
        if known is None:
            self.findings.error(subject, "the run is missing")
        elif not known & 1:
            self.findings.error(subject, "the run was let go, yet holds it")
        if not self._scopes[scope]:
            self.findings.error(subject, f"is of scope {scope}, which is not known")
        elif not 0 <= revision < self._scopes[scope]:
            self.findings.error(subject, f"stands at revision {revision}, which is yet to come")
        else:
            self._held.setdefault(scope, set()).add(revision)

    def _content(self, row: Row) -> None:
        id, digest, size, at, body = row
        self._greatest["content"] = id
        self._contents.add(id, digest, size, used=at >= self._young)
        if body is None:
            if self.outside.setdefault(digest, size) != size:
                self.findings.error(f"content {id}", "another with its digest has another size")
        elif len(body) != size or hashlib.sha256(body).digest() != digest:
            text = f"its bytes are not those of sha256:{digest.hex()}"
            self.findings.error(f"content {id}", text)

    def _event(self, row: Row) -> None:
        id, _, scope, run, sequence, _, payload, _ = row
        self._greatest["event"] = id
        if scope is not None and not self._scopes[scope]:
            self.findings.error(f"event {id}", f"is of scope {scope}, which is not known")
        if sequence is not None and sequence > self._runs.get(hash(run), 0) >> 1:
            self.findings.error(f"event {id}", f"has no place in the log of run {run}")
        if _parsed(payload) is None:
            self.findings.error(f"event {id}", "its payload is not a JSON object")

    def _delivery(self, row: Row) -> None:
        id, state = row[0], row[5]
        self._deliveries.add(hash(id))
        if state not in set(DeliveryState):
            self.findings.error(f"delivery {id}", "is in no state that is known")

    def _attempt(self, row: Row) -> None:
        if hash(row[0]) not in self._deliveries:
            self.findings.error(f"attempt {row[1]} of {row[0]}", "the delivery is missing")

    def _mark(self, row: Row) -> None:
        name, cursor = row
        if not (cursor.isascii() and cursor.isdigit()):
            self.findings.error(f"mark {name}", "is not the number of an event")
        elif int(cursor) > self._counters.get("event", 0):
            self.findings.error(f"mark {name}", "is past the last event")


def _pass(_: Row) -> None:
    """Nothing refers to these, and they refer to nothing that must be there."""


def _key(table: str, row: Row) -> str:
    return " ".join(_shown(str(part)) for part in row[: KEYS[table]])


def _shown(name: str) -> str:
    """A name without what follows its colon: the hash of a key, somebody's address."""
    return name.partition(":")[0]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _policy(said: Mapping[str, Any]) -> Policy:
    usual = Policy()
    return Policy(
        limits=_limits(said.get("limits"), usual.limits),
        shared_limits=_limits(said.get("sharedLimits"), usual.shared_limits),
    )


def _limits(said: Any, usual: Limits) -> Limits:
    most = said.get("maxVersions") if isinstance(said, dict) else None
    return replace(usual, max_versions=most) if isinstance(most, int) else usual
