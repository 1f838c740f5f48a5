"""Sessions in a dictionary, what was said in lists, and its words beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from carrel.adapters.memory.state import MemoryState
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.full_text import distinct
from carrel.core.sessions import Session, SessionAppend, TranscriptEntry, TranscriptHit, light

Place = tuple[str, str, int]


class MemorySessions:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def start(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        known = self._state.sessions
        return tuple(known.setdefault((one.tenant, one.id), one) for one in sessions)

    async def append(self, additions: Sequence[SessionAppend]) -> tuple[Session | None, ...]:
        return tuple(map(self._append, additions))

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        for one in await self.get(tenant, ids):
            if one and one.agent == agent and one.ended is None:
                self._state.sessions[tenant, one.id] = replace(one, ended=at)
        found = await self.get(tenant, ids)
        return tuple(one if one and one.agent == agent else None for one in found)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Session | None, ...]:
        return tuple(self._state.sessions.get((tenant, id)) for id in ids)

    async def count(self, tenant: str, agents: Sequence[str]) -> tuple[int, ...]:
        of = [
            session.agent for session in self._state.sessions.values() if session.tenant == tenant
        ]
        return tuple(of.count(agent) for agent in agents)

    async def list(
        self,
        tenant: str,
        agent: str,
        *,
        mode: Audience | None = None,
        before: tuple[TimestampMs, str] | None = None,
        limit: int = 100,
    ) -> tuple[Session, ...]:
        own = (
            one
            for one in sorted(self._state.sessions.values(), key=_newness, reverse=True)
            if (one.tenant, one.agent) == (tenant, agent) and mode in {None, one.mode}
        )
        return tuple(islice((one for one in own if not before or _newness(one) < before), limit))

    async def read(
        self, tenant: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        found = self._state.said.get((tenant, id), [])[after : after + limit]
        return tuple(light(found, lambda one: len(one.content.encode())))

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
        own = await self.list(tenant, agent, mode=mode, limit=len(self._state.sessions))
        found = [
            TranscriptHit(one.id, said)
            for one in own
            for said in self._state.said.get((tenant, one.id), ())
            if _has(self._state.words.get((tenant, one.id, said.sequence), ()), words, every=every)
        ]
        found.sort(
            key=lambda hit: (hit.utterance.at, hit.session, hit.utterance.sequence), reverse=True
        )
        return tuple(light(found[:limit], lambda hit: len(hit.utterance.content.encode())))

    async def touched(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        order = sorted(self._state.sessions.values(), key=_age)
        past = (
            one
            for one in order
            if one.last_entry_at >= since and (not after or _age(one) > _age(after))
        )
        return tuple(islice(past, limit))

    async def drop(self, sessions: Sequence[Session]) -> int:
        gone = [one for one in sessions if self._same(one)]
        for one in gone:
            key = (one.tenant, one.id)
            del self._state.sessions[key]
            for said in self._state.said.pop(key, []):
                self._state.words.pop((*key, said.sequence), None)
        return len(gone)

    async def unindex(self) -> int:
        self._state.words.clear()
        return sum(map(len, self._state.said.values()))

    async def index(
        self, after: Place | None = None, *, limit: int = 500
    ) -> tuple[Place | None, int]:
        every = sorted(
            ((*key, one.sequence), one.content)
            for key, said in self._state.said.items()
            for one in said
        )
        some = [(place, text) for place, text in every if after is None or place > after][:limit]
        for place, text in some:
            self._state.words[place] = distinct(text)
        return (some[-1][0] if some else None), len(some)

    def _append(self, addition: SessionAppend) -> Session | None:
        key = (addition.tenant, addition.session)
        was = self._state.sessions.get(key)
        if was is None or was.agent != addition.agent or was.ended is not None:
            return None
        said = self._state.said.setdefault(key, [])
        for one in addition.utterances:
            said.append(replace(one, sequence=len(said) + 1))
            self._state.words[*key, len(said)] = distinct(one.content)
        if addition.receipt in self._state.receipts:
            numbers = range(was.entries + 1, len(said) + 1)
            self._state.receipts[addition.receipt].versions = tuple(numbers)
        last = max([was.last_entry_at, *[one.at for one in addition.utterances]])
        self._state.sessions[key] = replace(was, entries=len(said), last_entry_at=last)
        return self._state.sessions[key]

    def _same(self, session: Session) -> bool:
        found = self._state.sessions.get((session.tenant, session.id))
        return found is not None and found.entries == session.entries


def _newness(session: Session) -> tuple[TimestampMs, str]:
    return session.last_entry_at, session.id


def _age(session: Session) -> tuple[TimestampMs, str, str]:
    return session.last_entry_at, session.tenant, session.id


def _has(there: Sequence[str], wanted: Sequence[str], *, every: bool) -> bool:
    begun = [any(word.startswith(one) for word in there) for one in wanted]
    return bool(begun) and (all(begun) if every else any(begun))
