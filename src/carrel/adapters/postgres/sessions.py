"""Sessions in PostgreSQL, and the full text of what was said in them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.rows import Row, columns
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.full_text import distinct
from carrel.core.sessions import (
    HEAVIEST,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
)

_LONG: Final = 64 * 1024
"""Characters from which on words are looked for in a thread."""
_AFTER_ALL: Final = (2**62, "")
_HEAVY: Final = 100
"""Utterances that are indexed at a time, each of which may be long."""
Place = tuple[str, str, int]
Ask = Callable[..., Awaitable[Sequence[Row]]]


class PostgresSessions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        rows = [
            (new.tenant, new.id, new.agent, new.mode, new.plugin, new.started, new.ended)
            for new in sessions
        ]
        await self._database.rows("start_sessions", *columns(rows, 7))
        found = await self._found([(new.tenant, new.id) for new in sessions])
        return tuple(found[new.tenant, new.id] for new in sessions)

    async def append(self, additions: Sequence[SessionAppend]) -> tuple[Session | None, ...]:
        long = sum(len(said.content) for one in additions for said in one.utterances) > _LONG
        rows = await asyncio.to_thread(_rows, additions) if long else _rows(additions)
        asks = [
            (
                *(one.tenant, one.session, one.agent, len(one.utterances)),
                *((one.receipt.endpoint, one.receipt.key) if one.receipt else (None, None)),
            )
            for one in additions
        ]
        ask = (*columns(asks, 6), *columns(rows, 7))
        became = {
            place: _session(row)
            for place, *row in await self._database.rows("append_utterances", *ask)
        }
        return tuple(became.get(place) for place in range(1, len(additions) + 1))

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        await self._database.rows("close_sessions", tenant, agent, list(ids), at)
        found = await self.get(tenant, ids)
        return tuple(one if one and one.agent == agent else None for one in found)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        found = await self._found([(tenant, id) for id in ids])
        return tuple(found.get((tenant, id)) for id in ids)

    async def count(self, tenant: str, agents: Sequence[str]) -> tuple[int, ...]:
        rows = await self._database.rows("sessions_counted", list(agents), tenant)
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
        ask = (tenant, agent, *(before or _AFTER_ALL), mode, limit)
        return tuple(map(_session, await self._database.rows("sessions_listed", *ask)))

    async def read(
        self, tenant: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        ask = (tenant, searchable_text(id), after, limit, HEAVIEST)
        return tuple(map(_utterance, await self._database.rows("utterances", *ask)))

    async def search(
        self,
        tenant: str,
        agent: str,
        words: Sequence[str],
        *,
        every: bool = True,
        mode: Audience | None = None,
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        if not words:
            return ()
        query = _query(_owner(tenant, agent), words, every=every)
        ask = (query, tenant, agent, mode, limit, HEAVIEST)
        rows = await self._database.rows("utterances_found", *ask)
        return tuple(TranscriptHit(row[0], _utterance(row[1:])) for row in rows)

    async def touched(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        place = (after.last_entry_at, after.tenant, after.id) if after else (-1, "", "")
        rows = await self._database.rows("sessions_touched", since, *place, limit)
        return tuple(map(_session, rows))

    async def drop(self, sessions: Sequence[Session]) -> int:
        rows = [(one.tenant, one.id, one.entries) for one in sessions]
        return int(await self._database.value("drop_sessions", *columns(rows, 3)))

    async def unindex(self) -> int:
        await self._database.rows("drop_all_words")
        return int(await self._database.value("utterances_counted"))

    async def index(
        self, after: Place | None = None, *, limit: int = 500
    ) -> tuple[Place | None, int]:
        return await index_some(self._database.rows, after, limit)

    async def _found(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Session]:
        wanted = [(tenant, searchable_text(id)) for tenant, id in keys]
        rows = await self._database.rows("sessions", *columns(wanted, 2))
        return {(row[0], row[1]): _session(row) for row in rows}


async def index_some(ask: Ask, after: Place | None, limit: int) -> tuple[Place | None, int]:
    """Index what lies past a place; where that ends, and how many were looked at."""
    rows = await ask("utterances_unindexed", *(after or ("", "", 0)), min(limit, _HEAVY))
    new = [row for row in rows if not row[5]]
    words = await asyncio.to_thread(_vectors, new)
    if new:
        places = [tuple(row[:3]) for row in new]
        await ask("add_words", *columns(places, 3), words)
    return (tuple(rows[-1][:3]) if rows else None), len(rows)


def _vectors(rows: Sequence[Row]) -> list[str]:
    return [_vector(_owner(row[0], row[3]), distinct(row[4].decode())) for row in rows]


def _rows(additions: Sequence[SessionAppend]) -> list[Row]:
    return [
        (
            *(said.at, said.role, said.content.encode(), said.message, said.plugin, said.sender),
            _vector(_owner(one.tenant, one.agent), distinct(said.content)),
        )
        for one in additions
        for said in one.utterances
    ]


def _owner(tenant: str, agent: str) -> str:
    """One word that stands for both, and that no text has."""
    return f"@{tenant}/{agent}"


def _vector(owner: str, words: Sequence[str]) -> str:
    return " ".join(map(_quoted, (owner, *words)))


def _query(owner: str, words: Sequence[str], *, every: bool) -> str:
    begun = (" & " if every else " | ").join(f"{_quoted(word)}:*" for word in words)
    return f"{_quoted(owner)} & ({begun})"


def _quoted(word: str) -> str:
    doubled = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def _session(row: Row) -> Session:
    tenant, id, agent, mode, *rest = row
    return Session(tenant, id, agent, Audience(mode), *rest)


def _utterance(row: Row) -> TranscriptEntry:
    number, at, role, content, message, plugin, sender = row
    return TranscriptEntry(number, at, SpeakerRole(role), content.decode(), message, plugin, sender)
