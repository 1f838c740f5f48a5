"""Sessions of an agent, and what is said in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import NewEntry
from carrel.core import sessions as transcript
from carrel.core.access import Actor
from carrel.core.runs import Audience
from carrel.core.sessions import TranscriptEntry
from carrel.ports import Ports
from carrel.server.python.caller import CallerContext, Resource, one_of, when


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said."""

    number: int
    """Its place in the session, from 1."""
    at: datetime
    role: str
    content: str
    message: str | None
    plugin: str
    sender: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that answers a search, and the id of its session."""

    session: str
    entry: Entry


def _entry(said: TranscriptEntry) -> Entry:
    facts = (said.role, said.content, said.message, said.plugin, said.sender)
    return Entry(said.sequence, when(said.at), *facts)


class Session(Resource):
    """One session, as it was when it was last asked for or changed here."""

    def __init__(self, seat: CallerContext, session: transcript.Session) -> None:
        super().__init__(seat)
        self._session = session

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self._session.agent}>"

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def mode(self) -> str:
        return self._session.mode

    @property
    def plugin(self) -> str:
        return self._session.plugin

    @property
    def started_at(self) -> datetime:
        return when(self._session.started)

    @property
    def ended_at(self) -> datetime | None:
        return None if self._session.ended is None else when(self._session.ended)

    @property
    def last_at(self) -> datetime:
        """When something was last said."""
        return when(self._session.last_entry_at)

    @property
    def entries(self) -> int:
        """How much was said."""
        return self._session.entries

    async def say(
        self,
        role: str,
        content: str,
        *,
        message: str | None = None,
        plugin: str = "",
        sender: str | None = None,
    ) -> Entry:
        """Keep what a user, an assistant, a tool or the system said; secrets are redacted.

        Raises Taken where the session is closed.
        """
        said = NewEntry(role, content, message, plugin, sender)
        [kept] = await sessions.append(*self._where, [said])
        await self.refresh()
        return _entry(kept)

    async def close(self) -> Session:
        """Nothing more can be said in it."""
        self._session = await sessions.close(*self._where)
        return self

    async def refresh(self) -> Session:
        self._session = await sessions.get(*self._where)
        return self

    async def read(self, *, after: int = 0, limit: int = 100) -> tuple[Entry, ...]:
        """What was said past a number, in order."""
        _, said = await sessions.entries(*self._where, after=after, limit=limit)
        return tuple(map(_entry, said))

    async def recent(self, limit: int = 10) -> tuple[Entry, ...]:
        """What was said last, in order."""
        _, said = await sessions.recent(*self._where, limit=limit)
        return tuple(map(_entry, said))

    async def lines(self) -> tuple[str, ...]:
        """The whole transcript as lines of JSON: a header, then everything that was said."""
        await self.refresh()
        told = b"".join([some async for some in sessions.jsonl(self._ports, self._session)])
        return tuple(told.decode().split("\n")[:-1])

    @property
    def _where(self) -> tuple[Ports, Actor, str, str]:
        return self._ports, self._actor, self._session.agent, self.id


class Sessions(Resource):
    """The sessions of one agent."""

    def __init__(self, seat: CallerContext, agent: str) -> None:
        super().__init__(seat)
        self._agent = agent

    async def start(
        self, id: str | None = None, *, mode: str | None = None, plugin: str = ""
    ) -> Session:
        """A new session, or the one of that id as it is. A mode that is not main is shared."""
        found = await sessions.start(
            self._ports, self._actor, self._agent, id=id, plugin=plugin, scope=mode
        )
        return Session(self._seat, found)

    async def get(self, id: str) -> Session:
        found = await sessions.get(self._ports, self._actor, self._agent, id)
        return Session(self._seat, found)

    async def list(self, *, mode: str | None = None, limit: int = 100) -> tuple[Session, ...]:
        """Those in which something was said last, first."""
        page = await sessions.listing(
            self._ports, self._actor, self._agent, mode=_mode(mode), limit=limit
        )
        return tuple(Session(self._seat, one) for one in page.items)

    async def search(
        self, query: str, *, mode: str | None = None, limit: int = 50
    ) -> tuple[Found, ...]:
        """What was said with these words, or words that begin so; the best answer first."""
        hits = await sessions.search(
            self._ports, self._actor, self._agent, query, mode=_mode(mode), limit=limit
        )
        return tuple(Found(hit.session, _entry(hit.utterance)) for hit in hits)


def _mode(mode: str | None) -> Audience | None:
    return None if mode is None else one_of(Audience, mode, "mode")
