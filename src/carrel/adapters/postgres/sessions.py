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
from carrel.core.sessions import (
    MAX_READ_BYTES,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
)
from carrel.core.store.idempotency import IdempotencyKey, number_from_id

_THREAD_THRESHOLD_CHARACTERS: Final = 64 * 1024
"""From this size on entries are tokenized in a thread."""
_AFTER_ALL_SESSIONS: Final = (2**62, "")
_MAX_INDEX_BATCH: Final = 100
"""Entries indexed at a time; each may be long."""
EntryPosition = tuple[str, str, int]
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
            )
            for session in sessions
        ]
        mark = mark_columns(idempotency_key, (number_from_id(session.id) for session in sessions))
        await self._database.rows("start_sessions", *transpose(rows, 7), *mark)
        by_key = await self._read_sessions([(session.tenant, session.id) for session in sessions])
        return tuple(by_key[session.tenant, session.id] for session in sessions)

    async def append(self, additions: Sequence[SessionAppend]) -> tuple[Session | None, ...]:
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
            )
            for addition in additions
        ]
        parameters = (*transpose(addition_rows, 6), *transpose(rows, 7))
        by_position = {
            position: _session_from_row(row)
            for position, *row in await self._database.rows("append_session_entries", *parameters)
        }
        return tuple(by_position.get(position) for position in range(1, len(additions) + 1))

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        await self._database.rows("close_sessions", tenant, agent, list(ids), at)
        sessions = await self.get(tenant, ids)
        return tuple(
            session if session and session.agent == agent else None for session in sessions
        )

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        by_key = await self._read_sessions([(tenant, id) for id in ids])
        return tuple(by_key.get((tenant, id)) for id in ids)

    async def count(self, tenant: str, agents: Sequence[str]) -> tuple[int, ...]:
        rows = await self._database.rows("count_sessions", list(agents), tenant)
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
        self, tenant: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        parameters = (tenant, searchable_text(id), after, limit, MAX_READ_BYTES)
        return tuple(
            map(_entry_from_row, await self._database.rows("session_entries", *parameters))
        )

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
        position = (after.last_entry_at, after.tenant, after.id) if after else (-1, "", "")
        rows = await self._database.rows("list_updated_sessions", since, *position, limit)
        return tuple(map(_session_from_row, rows))

    async def delete(self, sessions: Sequence[Session]) -> int:
        rows = [(session.tenant, session.id, session.entry_count) for session in sessions]
        return int(await self._database.value("delete_sessions", *transpose(rows, 3)))

    async def clear_index(self) -> int:
        await self._database.rows("delete_all_session_entry_terms")
        return int(await self._database.value("count_session_entries"))

    async def index_batch(
        self, after: EntryPosition | None = None, *, limit: int = 500
    ) -> tuple[EntryPosition | None, int]:
        return await index_batch(self._database.rows, after, limit)

    async def _read_sessions(
        self, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Session]:
        requested = [(tenant, searchable_text(id)) for tenant, id in keys]
        rows = await self._database.rows("sessions", *transpose(requested, 2))
        return {(row[0], row[1]): _session_from_row(row) for row in rows}


async def index_batch(
    run: RunStatement, after: EntryPosition | None, limit: int
) -> tuple[EntryPosition | None, int]:
    """Index entries after a position; return the new position and the number read."""
    rows = await run(
        "session_entries_to_index", *(after or ("", "", 0)), min(limit, _MAX_INDEX_BATCH)
    )
    unindexed = [row for row in rows if not row[5]]
    vectors = await asyncio.to_thread(_tsvectors, unindexed)
    if unindexed:
        positions = [tuple(row[:3]) for row in unindexed]
        await run("add_session_entry_terms", *transpose(positions, 3), vectors)
    return (tuple(rows[-1][:3]) if rows else None), len(rows)


def _tsvectors(rows: Sequence[Row]) -> list[str]:
    return [tsvector(owner_term(row[0], row[3]), distinct_terms(row[4].decode())) for row in rows]


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
    sequence, at, role, content, message, plugin, sender = row
    return TranscriptEntry(
        sequence, at, SpeakerRole(role), content.decode(), message, plugin, sender
    )
