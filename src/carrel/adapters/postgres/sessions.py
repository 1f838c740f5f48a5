"""Sessions in PostgreSQL, with a full-text index of their entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.idempotency import mark_columns
from carrel.adapters.postgres.rows import Row, transpose
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.bm25 import (
    MAX_COUNTED,
    TermCount,
    TermStatistics,
    TermWeight,
    split_weights,
)
from carrel.core.search.full_text import distinct_terms
from carrel.core.sessions.session import (
    MAX_READ_BYTES,
    EntryRemoval,
    LastEntryChanged,
    RemovedEntries,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
)
from carrel.core.sessions.session_ids import number_from_session_id
from carrel.core.store.idempotency import IdempotencyKey

_THREAD_THRESHOLD_CHARACTERS: Final = 64 * 1024
"""From this size on entries are tokenized in a thread."""
_AFTER_ALL_SESSIONS: Final = (2**62, "")
_MAX_INDEX_BATCH: Final = 100
"""Entries indexed at a time; each may be long."""
_AFTER_ALL_ENTRIES: Final = 2**62
_BEFORE_ALL_ENTRIES: Final = ("", "", "", 0)
EntryPosition = tuple[str, str, str, int]
RunStatement = Callable[..., Awaitable[Sequence[Row]]]


class PostgresSessions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(
        self, sessions: Sequence[Session], idempotency_key: IdempotencyKey | None = None
    ) -> tuple[Session, ...]:
        rows = [
            (
                session.tenant,
                session.id,
                session.agent,
                session.mode,
                session.plugin,
                session.started_at,
                session.ended_at,
                session.run,
            )
            for session in sessions
        ]
        mark = mark_columns(idempotency_key, (number_from_session_id(s.id) for s in sessions))
        await self._database.rows("start_sessions", *transpose(rows, 8), *mark)
        keys = [(session.tenant, session.agent, session.id) for session in sessions]
        by_key = await self._read_sessions(keys)
        return tuple(by_key[key] for key in keys)

    async def append(
        self, additions: Sequence[SessionAppend]
    ) -> tuple[Session | LastEntryChanged | None, ...]:
        is_long = (
            sum(len(entry.content) for addition in additions for entry in addition.entries)
            > _THREAD_THRESHOLD_CHARACTERS
        )
        rows = (
            await asyncio.to_thread(_entry_rows, additions) if is_long else _entry_rows(additions)
        )
        addition_rows = [
            (
                *(addition.tenant, addition.session, addition.agent, len(addition.entries)),
                *(
                    (addition.idempotency_key.endpoint, addition.idempotency_key.key)
                    if addition.idempotency_key
                    else (None, None)
                ),
                addition.after,
            )
            for addition in additions
        ]
        parameters = (*transpose(addition_rows, 7), *transpose(rows, 9))
        by_position = {
            position: _session_from_row(row) if last is None else LastEntryChanged(last)
            for position, *row, last in await self._database.rows(
                "append_session_entries", *parameters
            )
        }
        return tuple(by_position.get(position) for position in range(1, len(additions) + 1))

    async def remove(self, removals: Sequence[EntryRemoval]) -> tuple[RemovedEntries | None, ...]:
        rows = [
            (
                *(removal.tenant, removal.session, removal.agent, removal.at, removal.is_complete),
                removal.idempotency_key and removal.idempotency_key.endpoint,
                removal.idempotency_key and removal.idempotency_key.key,
            )
            for removal in removals
        ]
        by_position = {
            row[0]: RemovedEntries(
                _session_from_row(row[1:12]), None if row[12] is None else _entry_from_row(row[12:])
            )
            for row in await self._database.rows("remove_session_entries", *transpose(rows, 7))
        }
        return tuple(by_position.get(position) for position in range(1, len(removals) + 1))

    async def set_run(self, sessions: Sequence[Session]) -> None:
        rows = [(session.tenant, session.agent, session.id, session.run) for session in sessions]
        await self._database.rows("set_session_runs", *transpose(rows, 4))

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        await self._database.rows("close_sessions", tenant, agent, list(ids), at)
        return await self.get(tenant, agent, ids)

    async def get(self, tenant: str, agent: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        by_key = await self._read_sessions([(tenant, agent, id) for id in ids])
        return tuple(by_key.get((tenant, agent, id)) for id in ids)

    async def count(
        self, tenant: str, agents: Sequence[str], *, mode: Audience | None = None
    ) -> tuple[int, ...]:
        rows = await self._database.rows("count_sessions", list(agents), tenant, mode)
        return tuple(row[1] for row in rows)

    async def list(
        self,
        tenant: str,
        agent: str,
        *,
        mode: Audience | None = None,
        before: tuple[TimestampMs, str] | None = None,
        limit: int = 100,
    ) -> tuple[Session, ...]:
        parameters = (tenant, agent, *(before or _AFTER_ALL_SESSIONS), mode, limit)
        return tuple(
            map(_session_from_row, await self._database.rows("list_sessions", *parameters))
        )

    async def read(
        self, tenant: str, agent: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        parameters = (tenant, agent, searchable_text(id), after, limit, MAX_READ_BYTES)
        return tuple(
            map(_entry_from_row, await self._database.rows("session_entries", *parameters))
        )

    async def read_latest(
        self, tenant: str, agent: str, id: str, *, before: int | None = None, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        end = _AFTER_ALL_ENTRIES if before is None else before
        parameters = (tenant, agent, searchable_text(id), end, limit, MAX_READ_BYTES)
        return tuple(
            map(_entry_from_row, await self._database.rows("latest_session_entries", *parameters))
        )

    async def read_of_run(
        self,
        tenant: str,
        agent: str,
        run: str,
        *,
        after: tuple[TimestampMs, str, int] = (0, "", 0),
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        parameters = (tenant, agent, searchable_text(run), *after, limit, MAX_READ_BYTES)
        rows = await self._database.rows("session_entries_of_run", *parameters)
        return tuple(TranscriptHit(row[0], _entry_from_row(row[1:])) for row in rows)

    async def count_terms(self, tenant: str, agent: str, terms: Sequence[str]) -> TermStatistics:
        documents = await self._database.value("count_session_entries_by_agent", tenant, agent)
        owner = owner_term(tenant, agent)
        rows = [
            (term, *(_tsquery(owner, term, is_prefix=is_prefix) for is_prefix in (False, True)))
            for term in terms
        ]
        counts = await self._database.rows(
            "count_session_entry_terms", *transpose(rows, 3), MAX_COUNTED
        )
        return TermStatistics(documents, {term: TermCount(*numbers) for term, *numbers in counts})

    async def search(
        self,
        tenant: str,
        agent: str,
        terms: Sequence[TermWeight],
        *,
        mode: Audience | None = None,
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        if not terms:
            return ()
        owner = owner_term(tenant, agent)
        matches = [
            (_tsquery(owner, term, is_prefix=is_prefix), weight)
            for term, is_prefix, weight in split_weights(terms)
        ]
        parameters = (*transpose(matches, 2), tenant, agent, mode, limit, MAX_READ_BYTES)
        rows = await self._database.rows("search_session_entries", *parameters)
        return tuple(TranscriptHit(row[0], _entry_from_row(row[1:])) for row in rows)

    async def list_updated(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        position = (
            (after.last_entry_at, after.tenant, after.agent, after.id)
            if after
            else (-1, "", "", "")
        )
        rows = await self._database.rows("list_updated_sessions", since, *position, limit)
        return tuple(map(_session_from_row, rows))

    async def delete(self, sessions: Sequence[Session]) -> int:
        rows = [
            (
                *(session.tenant, session.agent, session.id),
                session.last_sequence,
                session.entry_count,
            )
            for session in sessions
        ]
        return int(await self._database.value("delete_sessions", *transpose(rows, 5)))

    async def clear_index(self) -> int:
        await self._database.rows("delete_all_session_entry_terms")
        return int(await self._database.value("count_session_entries"))

    async def index_batch(
        self, after: EntryPosition | None = None, *, limit: int = 500
    ) -> tuple[EntryPosition | None, int]:
        return await index_batch(self._database.rows, after, limit)

    async def _read_sessions(
        self, keys: Sequence[tuple[str, str, str]]
    ) -> dict[tuple[str, str, str], Session]:
        requested = [(tenant, agent, searchable_text(id)) for tenant, agent, id in keys]
        rows = await self._database.rows("sessions", *transpose(requested, 3))
        return {
            (session.tenant, session.agent, session.id): session
            for session in map(_session_from_row, rows)
        }


async def index_batch(
    run: RunStatement, after: EntryPosition | None, limit: int
) -> tuple[EntryPosition | None, int]:
    """Index entries after a position; return the new position and the number read."""
    rows = await run(
        "session_entries_to_index", *(after or _BEFORE_ALL_ENTRIES), min(limit, _MAX_INDEX_BATCH)
    )
    unindexed = [row for row in rows if not row[5]]
    vectors = await asyncio.to_thread(_tsvectors, unindexed)
    if unindexed:
        positions = [tuple(row[:4]) for row in unindexed]
        await run("add_session_entry_terms", *transpose(positions, 4), vectors)
    return (tuple(rows[-1][:4]) if rows else None), len(rows)


def _tsvectors(rows: Sequence[Row]) -> list[str]:
    return [tsvector(owner_term(row[0], row[1]), distinct_terms(row[4].decode())) for row in rows]


def _entry_rows(additions: Sequence[SessionAppend]) -> list[Row]:
    return [
        (
            *(
                entry.at,
                entry.role,
                entry.content.encode(),
                entry.message,
                entry.plugin,
                entry.sender,
                entry.item,
                entry.run,
            ),
            tsvector(owner_term(addition.tenant, addition.agent), distinct_terms(entry.content)),
        )
        for addition in additions
        for entry in addition.entries
    ]


def owner_term(tenant: str, agent: str) -> str:
    """Return one search term for tenant and agent, which no text contains."""
    return f"@{tenant}/{agent}"


def tsvector(owner: str, terms: Sequence[str]) -> str:
    return " ".join(map(_quote, (owner, *terms)))


def _tsquery(owner: str, term: str, *, is_prefix: bool) -> str:
    return f"{_quote(owner)} & {_quote(term)}" + ":*" * is_prefix


def _quote(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _session_from_row(row: Row) -> Session:
    tenant, id, agent, mode, *columns = row
    return Session(tenant, id, agent, Audience(mode), *columns)


def _entry_from_row(row: Row) -> TranscriptEntry:
    sequence, at, role, content, *columns = row
    return TranscriptEntry(sequence, at, SpeakerRole(role), content.decode(), *columns)
