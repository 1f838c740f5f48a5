"""Sessions in SQLite, with a full-text index of their entries.

The contentless index deletes a row only if given its terms again, so they are recomputed from the
text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from itertools import chain
from sqlite3 import Connection
from typing import Final

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.damage import undecodable_row
from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row
from carrel.adapters.sqlite.session_search import (
    count_terms_of,
    limit_bytes,
    match_expression,
    owner_term,
    search_rows,
)
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.bm25 import (
    TermStatistics,
    TermWeight,
    split_weights,
)
from carrel.core.search.full_text import distinct_terms
from carrel.core.sessions.session import (
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
"""From this size on entries are tokenized and written in a thread."""
_AFTER_ALL_SESSIONS: Final = (2**62, "")
_AFTER_ALL_ENTRIES: Final = 2**62
_BEFORE_ALL_ENTRIES: Final = ("", "", "", 0)
EntryPosition = tuple[str, str, str, int]


class SqliteSessions:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def start(
        self, sessions: Sequence[Session], idempotency_key: IdempotencyKey | None = None
    ) -> tuple[Session, ...]:
        def start(db: Connection, batch: CommitBatch) -> tuple[Session, ...]:
            created = sum(_start_session(db, session) for session in sessions)
            numbers = (number_from_session_id(session.id) for session in sessions)
            batch.mark_key(idempotency_key, chain([created], numbers))
            keys = [(session.tenant, session.agent, session.id) for session in sessions]
            by_key = _read_sessions(db, keys)
            return tuple(by_key[key] for key in keys)

        return await self._writer.submit(start)

    async def append(
        self, additions: Sequence[SessionAppend]
    ) -> tuple[Session | LastEntryChanged | None, ...]:
        is_long = (
            sum(len(entry.content) for addition in additions for entry in addition.entries)
            > _THREAD_THRESHOLD_CHARACTERS
        )
        texts = [[entry.content for entry in addition.entries] for addition in additions]
        terms_by_addition = (
            await asyncio.to_thread(_search_terms, texts) if is_long else _search_terms(texts)
        )
        pairs = tuple(zip(additions, terms_by_addition, strict=True))
        return await self._writer.submit(
            lambda db, batch: tuple(_append_entries(db, batch, *pair) for pair in pairs),
            is_long=is_long,
        )

    async def remove(self, removals: Sequence[EntryRemoval]) -> tuple[RemovedEntries | None, ...]:
        return await self._writer.submit(
            lambda db, batch: tuple(_remove_entries(db, batch, item) for item in removals),
            is_long=any(removal.is_complete for removal in removals),
            frees_space=True,
        )

    async def set_run(self, sessions: Sequence[Session]) -> None:
        rows = [(session.run, session.tenant, session.id, session.agent) for session in sessions]
        await self._writer.submit(
            lambda db, _: db.executemany(STATEMENTS["set_session_run"], rows) and None
        )

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        rows = [(at, tenant, id, agent) for id in ids]
        await self._writer.submit(
            lambda db, _: db.executemany(STATEMENTS["close_session"], rows) and None
        )
        return await self.get(tenant, agent, ids)

    async def get(self, tenant: str, agent: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        by_key = _read_sessions(self._reader.db, [(tenant, agent, id) for id in ids])
        return tuple(by_key.get((tenant, agent, id)) for id in ids)

    async def count(
        self, tenant: str, agents: Sequence[str], *, mode: Audience | None = None
    ) -> tuple[int, ...]:
        parameters = (json.dumps(list(agents)), tenant, mode)
        rows = self._reader.db.execute(STATEMENTS["count_sessions"], parameters).fetchall()
        return tuple(count for _, count in rows)

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
        rows = self._reader.db.execute(STATEMENTS["list_sessions"], parameters).fetchall()
        return tuple(map(_session_from_row, rows))

    async def read(
        self, tenant: str, agent: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        return await self._read_entries("session_entries", (tenant, agent, id, after, limit))

    async def read_latest(
        self, tenant: str, agent: str, id: str, *, before: int | None = None, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        end = _AFTER_ALL_ENTRIES if before is None else before
        return await self._read_entries("latest_session_entries", (tenant, agent, id, end, limit))

    async def _read_entries(self, statement: str, parameters: Row) -> tuple[TranscriptEntry, ...]:
        rows = await self._reader.scan(
            lambda db: limit_bytes(db.execute(STATEMENTS[statement], parameters), 3)
        )
        return tuple(map(_entry_from_row, rows))

    async def read_of_run(
        self,
        tenant: str,
        agent: str,
        run: str,
        *,
        after: tuple[TimestampMs, str, int] = (0, "", 0),
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        parameters = (tenant, agent, run, *after, limit)
        rows = await self._reader.scan(
            lambda db: limit_bytes(db.execute(STATEMENTS["session_entries_of_run"], parameters), 4)
        )
        return tuple(TranscriptHit(row[0], _entry_from_row(row[1:])) for row in rows)

    async def count_terms(self, tenant: str, agent: str, terms: Sequence[str]) -> TermStatistics:
        return await self._reader.scan(lambda db: count_terms_of(db, (tenant, agent), terms))

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
            (match_expression(owner, item, is_prefix=is_prefix), weight)
            for item, is_prefix, weight in split_weights(terms)
        ]
        parameters = (json.dumps(matches), tenant, agent, mode, limit)
        rows = await self._reader.scan(lambda db: search_rows(db, parameters))
        return tuple(TranscriptHit(row[0], _entry_from_row(row[1:])) for row in rows)

    async def list_updated(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        position = (
            (after.last_entry_at, after.tenant, after.agent, after.id)
            if after
            else (-1, "", "", "")
        )
        rows = await self._reader.scan(
            lambda db: db.execute(
                STATEMENTS["list_updated_sessions"], (since, *position, limit)
            ).fetchall()
        )
        return tuple(map(_session_from_row, rows))

    async def delete(self, sessions: Sequence[Session]) -> int:
        deleted = [
            await self._writer.submit(
                partial(_delete_session, session), is_long=True, frees_space=True
            )
            for session in sessions
        ]
        return sum(deleted)

    async def clear_index(self) -> int:
        return await self._writer.submit(_unindex, is_long=True)

    async def index_batch(
        self, after: EntryPosition | None = None, *, limit: int = 500
    ) -> tuple[EntryPosition | None, int]:
        return await self._writer.submit(lambda db, _: index_batch(db, after, limit), is_long=True)


def index_batch(
    db: Connection, after: EntryPosition | None, limit: int
) -> tuple[EntryPosition | None, int]:
    """Index entries after a position; return the new position and the number read."""
    rows = limit_bytes(
        db.execute(
            STATEMENTS["session_entries_to_index"], (*(after or _BEFORE_ALL_ENTRIES), limit)
        ),
        5,
    )
    for tenant, agent, _, _, id, content, is_indexed in rows:
        if not is_indexed:
            add_terms(db, id, owner_term(tenant, agent), distinct_terms(content.decode()))
    return (tuple(rows[-1][:4]) if rows else None), len(rows)


def _start_session(db: Connection, session: Session) -> int:
    """Store a session unless its id is in use; return how many are new."""
    row = (
        *(session.tenant, session.id, session.agent, session.mode, session.plugin),
        session.started_at,
        session.ended_at,
        session.run,
    )
    return db.execute(STATEMENTS["start_session"], (*row, session.started_at)).rowcount


def _append_entries(
    db: Connection,
    batch: CommitBatch,
    addition: SessionAppend,
    terms_by_entry: Sequence[Sequence[str]],
) -> Session | LastEntryChanged | None:
    if changed := _find_changed_end(db, addition):
        return changed
    entries = addition.entries
    last_entry_at = max([0, *[entry.at for entry in entries]])
    parameters = (len(entries), last_entry_at, addition.tenant, addition.session, addition.agent)
    row = db.execute(STATEMENTS["extend_session"], parameters).fetchone()
    if row is None:
        return None
    session = _session_from_row(row)
    first = session.last_sequence - len(entries) + 1
    [id] = db.execute(STATEMENTS["last_session_entry_id"]).fetchone()
    owner = owner_term(addition.tenant, addition.agent)
    for offset, (entry, terms) in enumerate(zip(entries, terms_by_entry, strict=True)):
        key_columns = (
            *(id + 1 + offset, addition.tenant, addition.agent, addition.session),
            first + offset,
        )
        content_columns = (
            entry.at,
            entry.role,
            entry.content.encode(),
            entry.message,
            entry.plugin,
            entry.sender,
            entry.item,
            entry.run or session.run,
        )
        db.execute(STATEMENTS["add_session_entry"], (*key_columns, *content_columns))
        add_terms(db, key_columns[0], owner, terms)
    batch.mark_key(addition.idempotency_key, range(first, session.last_sequence + 1))
    return session


def _find_changed_end(db: Connection, addition: SessionAppend) -> LastEntryChanged | None:
    """Return the last entry of an open session if it is not the expected one."""
    if addition.after is None:
        return None
    key = (addition.tenant, addition.session, addition.agent)
    row = db.execute(STATEMENTS["open_session_last_entry"], key).fetchone()
    return None if row is None or row[0] == addition.after else LastEntryChanged(row[0])


def _remove_entries(
    db: Connection, batch: CommitBatch, removal: EntryRemoval
) -> RemovedEntries | None:
    key = (removal.tenant, removal.session, removal.agent)
    if db.execute(STATEMENTS["open_session_entry_count"], key).fetchone() is None:
        return None
    entry_key = (removal.tenant, removal.agent, removal.session)
    parameters = (*entry_key, _AFTER_ALL_ENTRIES, 1)
    row = db.execute(STATEMENTS["latest_session_entries"], parameters).fetchone()
    last = row and _entry_from_row(row)
    count = (
        _delete_entries(db, entry_key, 0 if removal.is_complete else last.sequence) if row else 0
    )
    at = removal.at if count else 0
    row = db.execute(STATEMENTS["shrink_session"], (count, at, *key)).fetchone()
    batch.mark_key(removal.idempotency_key, [last.sequence if last else 0])
    return RemovedEntries(_session_from_row(row), last)


def _delete_entries(db: Connection, key: tuple[str, str, str], first: int) -> int:
    """Delete the entries of a session from a number on, with their terms; return how many."""
    owner = owner_term(key[0], key[1])
    rows = db.execute(STATEMENTS["indexed_entries_of_session"], (*key, first)).fetchall()
    for id, content in rows:
        terms = " ".join(distinct_terms(content.decode()))
        db.execute(STATEMENTS["delete_session_entry_terms"], (id, owner, terms))
    return db.execute(STATEMENTS["delete_session_entries"], (*key, first)).rowcount


def _delete_session(session: Session, db: Connection, _: CommitBatch) -> int:
    key = (session.tenant, session.agent, session.id)
    state = (session.last_sequence, session.entry_count)
    if not db.execute(STATEMENTS["delete_session"], (*key, *state)).rowcount:
        return 0
    _delete_entries(db, key, 0)
    db.execute(STATEMENTS["unlink_runs_of_session"], key)
    return 1


def _unindex(db: Connection, _: CommitBatch) -> int:
    db.execute(STATEMENTS["delete_all_session_entry_terms"])
    return int(db.execute(STATEMENTS["count_session_entries"]).fetchone()[0])


def add_terms(db: Connection, id: int, owner: str, terms: Sequence[str]) -> None:
    db.execute(STATEMENTS["add_session_entry_terms"], (id, owner, " ".join(terms)))


def _search_terms(texts: Sequence[Sequence[str]]) -> list[list[tuple[str, ...]]]:
    return [[distinct_terms(content) for content in contents] for contents in texts]


def _read_sessions(
    db: Connection, keys: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], Session]:
    rows = db.execute(STATEMENTS["sessions"], (json.dumps(keys),)).fetchall()
    return {
        (session.tenant, session.agent, session.id): session
        for session in map(_session_from_row, rows)
    }


def _session_from_row(row: Row) -> Session:
    tenant, id, agent, mode, *columns = row
    return Session(tenant, id, agent, Audience(mode), *columns)


def _entry_from_row(row: Row) -> TranscriptEntry:
    sequence, at, role, content, *columns = row
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise undecodable_row("session_entry", str(sequence)) from error
    return TranscriptEntry(sequence, at, SpeakerRole(role), text, *columns)
