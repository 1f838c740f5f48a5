"""Sessions in SQLite, and the full text of what was said in them.

A row of the index lets go of its words only if it is told them again; they are made from the same
text in the same way.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from sqlite3 import Connection, Cursor
from typing import Final

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.full_text import distinct
from carrel.core.sessions import (
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
    light,
)

_LONG: Final = 64 * 1024
"""Characters from which on words are looked for, and written, in a thread."""
_AFTER_ALL: Final = (2**62, "")
Place = tuple[str, str, int]


class SqliteSessions:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def start(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        return await self._writer.submit(lambda db, _: tuple(_start(db, one) for one in sessions))

    async def append(self, additions: Sequence[SessionAppend]) -> tuple[Session | None, ...]:
        long = sum(len(said.content) for one in additions for said in one.utterances) > _LONG
        told = [[said.content for said in one.utterances] for one in additions]
        words = await asyncio.to_thread(_words, told) if long else _words(told)
        pairs = tuple(zip(additions, words, strict=True))
        return await self._writer.submit(
            lambda db, _: tuple(_append(db, one, some) for one, some in pairs), long=long
        )

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        asks = [(at, tenant, id, agent) for id in ids]
        await self._writer.submit(lambda db, _: db.executemany(SQL["close_session"], asks) and None)
        found = await self.get(tenant, ids)
        return tuple(one if one and one.agent == agent else None for one in found)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        found = _sessions(self._reader.db, [(tenant, id) for id in ids])
        return tuple(found.get((tenant, id)) for id in ids)

    async def count(self, tenant: str, agents: Sequence[str]) -> tuple[int, ...]:
        ask = (json.dumps(list(agents)), tenant)
        rows = self._reader.db.execute(SQL["sessions_counted"], ask).fetchall()
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
        ask = (tenant, agent, *(before or _AFTER_ALL), mode, limit)
        rows = self._reader.db.execute(SQL["sessions_listed"], ask).fetchall()
        return tuple(map(_session, rows))

    async def read(
        self, tenant: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        ask = (tenant, id, after, limit)
        rows = await self._reader.scan(lambda db: _light(db.execute(SQL["utterances"], ask), 3))
        return tuple(map(_utterance, rows))

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
        ask = (_match(_owner(tenant, agent), words, every=every), tenant, agent, mode, limit)
        rows = await self._reader.scan(lambda db: _found(db, ask))
        return tuple(TranscriptHit(row[0], _utterance(row[1:])) for row in rows)

    async def touched(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        place = (after.last_entry_at, after.tenant, after.id) if after else (-1, "", "")
        rows = await self._reader.scan(
            lambda db: db.execute(SQL["sessions_touched"], (since, *place, limit)).fetchall()
        )
        return tuple(map(_session, rows))

    async def drop(self, sessions: Sequence[Session]) -> int:
        gone = [await self._writer.submit(partial(_drop, one), long=True) for one in sessions]
        return sum(gone)

    async def unindex(self) -> int:
        return await self._writer.submit(_unindex, long=True)

    async def index(
        self, after: Place | None = None, *, limit: int = 500
    ) -> tuple[Place | None, int]:
        return await self._writer.submit(lambda db, _: index_some(db, after, limit), long=True)


def index_some(db: Connection, after: Place | None, limit: int) -> tuple[Place | None, int]:
    """Index what lies past a place; where that ends, and how many were looked at."""
    rows = _light(db.execute(SQL["utterances_unindexed"], (*(after or ("", "", 0)), limit)), 5)
    for tenant, _, _, id, agent, content, done in rows:
        if not done:
            _add_words(db, id, _owner(tenant, agent), distinct(content.decode()))
    return (tuple(rows[-1][:3]) if rows else None), len(rows)


def _start(db: Connection, new: Session) -> Session:
    row = (*(new.tenant, new.id, new.agent, new.mode, new.plugin), new.started, new.ended)
    db.execute(SQL["start_session"], (*row, new.started))
    return _sessions(db, [(new.tenant, new.id)])[new.tenant, new.id]


def _append(
    db: Connection, addition: SessionAppend, words: Sequence[Sequence[str]]
) -> Session | None:
    said = addition.utterances
    last = max([0, *[one.at for one in said]])
    ask = (len(said), last, addition.tenant, addition.session, addition.agent)
    row = db.execute(SQL["extend_session"], ask).fetchone()
    if row is None:
        return None
    became = _session(row)
    first = became.entries - len(said) + 1
    [id] = db.execute(SQL["last_utterance"]).fetchone()
    owner = _owner(addition.tenant, addition.agent)
    for place, (one, its) in enumerate(zip(said, words, strict=True)):
        head = (id + 1 + place, addition.tenant, addition.session, first + place)
        told = (one.at, one.role, one.content.encode(), one.message, one.plugin, one.sender)
        db.execute(SQL["add_utterance"], (*head, *told))
        _add_words(db, head[0], owner, its)
    if key := addition.receipt:
        numbers = json.dumps(list(range(first, became.entries + 1)))
        db.execute(SQL["mark_receipt"], (numbers, key.tenant, key.endpoint, key.key))
    return became


def _drop(session: Session, db: Connection, _: CommitBatch) -> int:
    key = (session.tenant, session.id)
    if not db.execute(SQL["drop_session"], (*key, session.entries)).rowcount:
        return 0
    owner = _owner(session.tenant, session.agent)
    for id, content in db.execute(SQL["words_of_session"], key).fetchall():
        db.execute(SQL["drop_said_words"], (id, owner, " ".join(distinct(content.decode()))))
    db.execute(SQL["drop_utterances"], key)
    return 1


def _unindex(db: Connection, _: CommitBatch) -> int:
    db.execute(SQL["drop_all_words"])
    return int(db.execute(SQL["utterances_counted"]).fetchone()[0])


def _add_words(db: Connection, id: int, owner: str, words: Sequence[str]) -> None:
    db.execute(SQL["add_words"], (id, owner, " ".join(words)))


def _words(told: Sequence[Sequence[str]]) -> list[list[tuple[str, ...]]]:
    return [[distinct(content) for content in contents] for contents in told]


def _owner(tenant: str, agent: str) -> str:
    """One word that stands for both."""
    return hashlib.blake2b(f"{tenant}/{agent}".encode(), digest_size=12).hexdigest()


def _match(owner: str, words: Sequence[str], *, every: bool) -> str:
    """As FTS5 asks for it; words are letters and digits, so quoting them is enough."""
    begun = (" AND " if every else " OR ").join(f'"{word}" *' for word in words)
    return f'{{owner}} : "{owner}" AND {{words}} : ({begun})'


def _sessions(db: Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Session]:
    rows = db.execute(SQL["sessions"], (json.dumps(keys),)).fetchall()
    return {(row[0], row[1]): _session(row) for row in rows}


def _session(row: Row) -> Session:
    tenant, id, agent, mode, *rest = row
    return Session(tenant, id, agent, Audience(mode), *rest)


def _utterance(row: Row) -> TranscriptEntry:
    number, at, role, content, message, plugin, sender = row
    return TranscriptEntry(number, at, SpeakerRole(role), content.decode(), message, plugin, sender)


def _found(db: Connection, ask: Row) -> list[Row]:
    """By their ids first: what is sorted is short then, whatever was said."""
    ids = [row[0] for row in db.execute(SQL["utterances_found"], ask).fetchall()]
    return _light(db.execute(SQL["utterances_by_id"], (json.dumps(ids),)), 4)


def _light(rows: Cursor, content: int) -> list[Row]:
    """As many rows as one answer carries, by the column that is long."""
    some: Iterator[Row] = light(rows, lambda row: len(row[content]))
    return list(some)
