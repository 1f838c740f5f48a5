"""Removes one text from everything that a tenant stores, step by step."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.approvals.transitions import cancel, open_arguments
from carrel.actions.deleted_bytes import remove_deleted_bytes
from carrel.actions.idempotency import VAULT_CONTEXT
from carrel.actions.maintenance.purged_contents import REASON, purge_versions
from carrel.actions.maintenance.purged_sessions import purge_sessions, rewrite_transcripts
from carrel.actions.records import commit_changes, iter_records
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_config
from carrel.core.approvals import TRANSITIONS, ApprovalStatus, approval_from_record
from carrel.core.errors import Busy, Conflict, ValidationError
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.maintenance.text_columns import TEXT_COLUMNS, RowRewrite, purge_row
from carrel.core.memory.memory import derived_memory_change
from carrel.core.redaction.text_purge import TextPurge
from carrel.core.search.name_words import replace_name_keys
from carrel.core.store.commit import Commit, ExpectationFailed, Outcome
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import CorruptContent, Ports
from carrel.ports.erasure import RecordWithKeys

CANCELLED_REASON: Final = "a text of its arguments was purged"
_VERSIONS, _RECORDS, _CONTENTS = "versions", "records", "contents"
_SESSIONS: Final = "session"
_STAGES: Final = tuple(dict.fromkeys((_VERSIONS, _SESSIONS, _RECORDS, *TEXT_COLUMNS, _CONTENTS)))
"""Sessions before records: approvals of a session with a new id are changed with it."""
_MAX_PASSES: Final = 5
"""A pass that changed something is followed by another one, which finds concurrent writes."""
_MAX_EXAMINED: Final = 5000
"""Rows after which a step ends."""
_MAX_BATCHES: Final = 50
_UPLOAD_MS: Final = 60_000
"""Milliseconds between the upload of a large content and its commit."""


class PurgeRequest(Struct, frozen=True):
    text: str
    dry_run: bool = False
    cursor: str = ""
    """`cursor` of the previous step; empty begins."""

    def __repr__(self) -> str:  # the text must never be logged
        return f"PurgeRequest(dry_run={self.dry_run!r})"


class PurgeStep(Struct, frozen=True):
    counts: dict[str, int]
    """Changed rows by kind so far, or with `dry_run` those that would change."""
    completed: int
    total: int
    """Stages of the current pass."""
    cursor: str | None
    """None at the end."""


class _State(Struct, frozen=True):
    """Progress, sealed into the cursor: positions may contain paths."""

    stage: int = 0
    position: list[Any] | None = None
    passes: int = 1
    changed: int = 0
    """Changes of the current pass."""
    counts: dict[str, int] = {}


async def purge_text(ports: Ports, actor: Actor, request: PurgeRequest) -> PurgeStep:
    """Remove a text from the tenant's store: one step of bounded size.

    Repeat with the cursor until there is none. If interrupted, begin again. Occurrences become
    `[REDACTED:purged]`; versions keep their numbers. The audit names the caller and counts, never
    the text. Raises Forbidden, and ValidationError for an unsuitable text or cursor.
    """
    actor.require_owner("purge a text")
    purge = TextPurge(request.text)
    context = _cursor_context(actor, request)
    state = _open_cursor(ports, request.cursor, context) if request.cursor else _State()
    if not request.cursor and not request.dry_run:
        await _audit(ports, actor, REASON)
    examined = batches = 0
    while state.stage < len(_STAGES) and examined < _MAX_EXAMINED and batches < _MAX_BATCHES:
        count, state = await _run_batch(ports, actor, purge, state, dry_run=request.dry_run)
        examined, batches = examined + count, batches + 1
        state = _next_pass(state, dry_run=request.dry_run)
    completed = min(state.stage, len(_STAGES))
    if state.stage < len(_STAGES):
        cursor = ports.vault.seal(msgspec.json.encode(state), context)
        return PurgeStep(state.counts, completed, len(_STAGES), cursor)
    if not request.dry_run:
        await _finish(ports, actor, purge, state)
    return PurgeStep(state.counts, completed, len(_STAGES), None)


def _next_pass(state: _State, *, dry_run: bool) -> _State:
    """Return the state at the begin of another pass if one is needed."""
    if state.stage < len(_STAGES) or dry_run or not state.changed or state.passes >= _MAX_PASSES:
        return state
    return _State(passes=state.passes + 1, counts=state.counts)


def _cursor_context(actor: Actor, request: PurgeRequest) -> str:
    digest = hashlib.sha256(request.text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"purge/{actor.tenant}/{request.dry_run}/{digest}"


def _open_cursor(ports: Ports, cursor: str, context: str) -> _State:
    try:
        return msgspec.json.decode(ports.vault.open(cursor, context), type=_State)
    except (CorruptContent, ValueError):
        raise ValidationError("this cursor belongs to another purge") from None


async def _run_batch(
    ports: Ports, actor: Actor, purge: TextPurge, state: _State, *, dry_run: bool
) -> tuple[int, _State]:
    """Run one batch of the current stage; return the rows read and the new state."""
    stage = _STAGES[state.stage]
    after = None if state.position is None else tuple(state.position)
    if stage == _VERSIONS:
        step = await purge_versions(ports, actor, purge, after, dry_run=dry_run)
        counts = {"versions": step.versions, "paths": step.paths}
        return step.examined, _advance(state, step.position, counts)
    if stage == _RECORDS:
        return await _purge_records(ports, actor, purge, state, dry_run=dry_run)
    if stage == _SESSIONS:
        rows = await purge_sessions(ports, actor, purge, after, dry_run=dry_run)
        return rows.examined, _advance(state, rows.position, {stage: len(rows.changed)})
    if stage == _CONTENTS:
        before = ports.clock.now() - _UPLOAD_MS
        deleted = 0 if dry_run else await ports.erasure.delete_unreferenced(purge.is_in, before)
        return 0, _advance(state, None, {"contents": deleted})
    rewrite = _row_rewrite(ports, purge, stage)
    rows = await ports.erasure.rewrite_rows(
        actor.tenant, stage, rewrite, after=after, limit=_row_limit(stage), dry_run=dry_run
    )
    if stage == "session_entry" and rows.changed and not dry_run:
        await rewrite_transcripts(ports, actor.tenant, {(key[1], key[2]) for key in rows.changed})
    return rows.examined, _advance(state, rows.position, {stage: len(rows.changed)})


def _row_limit(table: str) -> int:
    return 50 if table == "session_entry" else 500


def _advance(state: _State, position: Sequence[Any] | None, counts: dict[str, int]) -> _State:
    total = {
        kind: state.counts.get(kind, 0) + counts.get(kind, 0) for kind in state.counts | counts
    }
    return replace(
        state,
        stage=state.stage + (position is None),
        position=None if position is None else list(position),
        changed=state.changed + sum(counts.values()),
        counts={kind: count for kind, count in total.items() if count},
    )


def _row_rewrite(ports: Ports, purge: TextPurge, table: str) -> RowRewrite:
    def rewrite(values: Sequence[Any]) -> Sequence[Any] | None:
        if table != "idempotency_key":
            return purge_row(purge, table, values)
        endpoint, key, sealed = values
        content = ports.vault.open(sealed, VAULT_CONTEXT) if sealed else b""
        parts = (endpoint.encode(), key.encode(), content)
        return None if any(map(purge.is_in, parts)) else values

    return rewrite


async def _purge_records(
    ports: Ports, actor: Actor, purge: TextPurge, state: _State, *, dry_run: bool
) -> tuple[int, _State]:
    limit = 500
    after = (state.position[0], state.position[1]) if state.position else None
    batch = await ports.erasure.list_records(actor.tenant, after=after, limit=limit)
    changes, cancelled = [], 0
    for item in batch:
        if await _cancel_call(ports, purge, item.record, dry_run=dry_run):
            cancelled += 1
            if not dry_run:
                continue  # The next pass replaces the arguments that are displayed.
        if change := _purged_change(purge, item):
            changes.append(change)
    if not dry_run:
        await _commit_each(ports, actor, changes)
    last = (batch[-1].record.type, batch[-1].record.id) if len(batch) == limit else None
    return len(batch), _advance(state, last, {"records": len(changes), "calls": cancelled})


def _purged_change(purge: TextPurge, item: RecordWithKeys) -> RecordChange | None:
    """Return the change that removes the text from a record; None if it is not there."""
    record = item.record
    body = purge.replace_value(record.body)
    unique_keys, index_keys = (
        tuple(map(purge.replace_text, keys)) for keys in (item.unique_keys, item.index_keys)
    )
    if (body, unique_keys, index_keys) == (record.body, item.unique_keys, item.index_keys):
        return None
    if record.type is RecordType.MEMORY:
        return derived_memory_change(replace(record, body=body))
    index_keys = replace_name_keys(record.type, body, index_keys)
    return RecordChange(
        *(record.tenant, record.type, record.id, body, record.revision),
        *(unique_keys, index_keys),
    )


async def _commit_each(ports: Ports, actor: Actor, changes: Sequence[RecordChange]) -> None:
    """Commit each change; a record that changed meanwhile is left to the next pass."""

    async def commit(changes: Sequence[RecordChange]) -> Sequence[Outcome]:
        now, key = ports.clock.now(), actor.key_reference
        return await ports.trees.commit(
            [Commit((), actor.name, REASON, now, changes=(item,), key=key) for item in changes]
        )

    outcomes = await commit(changes)
    # Without the text, a memory may be the same as another.
    equal = [
        replace(change, unique_keys=())
        for change, outcome in zip(changes, outcomes, strict=True)
        if change.type is RecordType.MEMORY
        and isinstance(outcome, ExpectationFailed)
        and outcome.unique_key
    ]
    await commit(equal)


async def _cancel_call(ports: Ports, purge: TextPurge, record: Record, *, dry_run: bool) -> bool:
    """Cancel a pending call whose encrypted arguments contain the text; return whether it did."""
    if record.type is not RecordType.APPROVAL:
        return False
    approval = approval_from_record(record)
    if ApprovalStatus.CANCELLED not in TRANSITIONS[approval.status] or not approval.sealed:
        return False
    if not purge.is_in(msgspec.json.encode(open_arguments(ports, approval))):
        return False
    if not dry_run:
        try:
            await cancel(ports, record, CANCELLED_REASON)
        except (Busy, Conflict):
            return False
    return True


async def _finish(ports: Ports, actor: Actor, purge: TextPurge, state: _State) -> None:
    """Delete git repositories, which are built again, and the bytes of deleted rows."""
    if state.counts and ports.repositories is not None:
        async for agent in iter_records(ports, actor.tenant, RecordType.AGENT):
            if agent_config(agent).workspace_git.enabled:
                await ports.repositories.delete(Scope(agent.tenant, ScopeKind.AGENT, agent.id))
    await remove_deleted_bytes(ports, purge.is_in)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(state.counts.items()))
    await _audit(ports, actor, f"{REASON}: {counted or 'not found'}")


async def _audit(ports: Ports, actor: Actor, reason: str) -> None:
    subjects = (f"{RecordType.TENANT}/{actor.tenant}",)
    await commit_changes(ports, actor, reason, [], audit_subjects=subjects, tenant=actor.tenant)
