"""Applying a commit that nothing speaks against: versions, events, records, deed, receipt."""

from __future__ import annotations

import json
from collections.abc import Sequence

from carrel.adapters.memory.state import MemoryState, RecordKey, ScopeHistory
from carrel.core.identifiers import TimestampMs
from carrel.core.store.event import UPDATED
from carrel.core.store.record import QUIET, AuditEntry, Record, RecordChange
from carrel.core.store.tree import (
    Applied,
    Commit,
    Head,
    Version,
    Write,
    audit_subjects,
    event_drafts,
)


def check_storable(commit: Commit) -> None:
    """Raise for what is not JSON, before any commit of the same call has been applied."""
    for change in commit.changes:
        json.dumps(change.body)
    for event in commit.events:
        json.dumps(event.payload)


def apply(state: MemoryState, commit: Commit) -> Applied:
    before = {write.scope: state.told(write.scope).revision for write in commit.writes}
    heads = tuple(_written(state, commit, write, before[write.scope]) for write in commit.writes)
    if commit.changes:
        _change(state, commit.changes, commit.at)
    for event in event_drafts(commit):
        state.tell(event, commit.at, commit.run)
    for tenant, subjects in audit_subjects(commit).items():
        number = len(state.deeds) + 1
        state.deeds.append(
            AuditEntry(number, tenant, commit.at, commit.author, commit.reason, subjects)
        )
    if commit.idempotency_key in state.receipts:
        state.receipts[commit.idempotency_key].versions = tuple(head.version for head in heads)
    return Applied(heads)


def _written(state: MemoryState, commit: Commit, write: Write, revision: int) -> Head:
    told = state.scopes.setdefault(write.scope, ScopeHistory())
    was = told.head(write.path)
    if write.entry is None and (was is None or was.entry is None):
        return was or Head(write.path, 0, revision, commit.at, None)
    told.revision = revision + 1
    number = was.version + 1 if was else 1
    head = Head(write.path, number, told.revision, commit.at, write.entry)
    told.add(Version(head, commit.author, commit.reason, commit.run))
    if not state.keeps_all(write.scope):
        told.prune(write.path, commit.max_versions, state.held(write.scope))
    payload = {"path": write.path.text, "version": number}
    state.log(UPDATED, write.scope, commit.at, payload, commit.run)
    return head


def _change(state: MemoryState, changes: Sequence[RecordChange], at: TimestampMs) -> None:
    changed = [change for change in changes if _changed(state, change, at)]
    for collection_revision in dict.fromkeys((change.tenant, change.type) for change in changed):
        state.shelves[collection_revision] = state.shelves.get(collection_revision, 0) + 1
    state.records_revision += any(change.type not in QUIET for change in changed)


def _changed(state: MemoryState, change: RecordChange, at: TimestampMs) -> bool:
    key = (change.tenant, change.type, change.id)
    was = state.records.pop(key, None)
    _forget_names(state, key)
    if change.body is None:
        return was is not None
    state.records[key] = Record(
        *key,
        revision=was.revision + 1 if was else 1,
        body=json.loads(json.dumps(change.body)),
        created_at=was.created_at if was else at,
        updated_at=at,
    )
    state.handles.update(dict.fromkeys(change.unique_keys, key))
    state.links[key] = change.index_keys
    return True


def _forget_names(state: MemoryState, key: RecordKey) -> None:
    state.links.pop(key, None)
    for name in [name for name, owner in state.handles.items() if owner == key]:
        del state.handles[name]
