"""Mirroring transcripts: whatever is said in a session is written to its file soon afterwards.

The store is the truth. What a file lacks is seen by looking at it, so nothing has to be remembered
of how far this came; whoever begins looks at the files of all sessions once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from carrel.actions.catalog.follower import first_of, told_of
from carrel.actions.records import iter_records
from carrel.core.agents.config import config_of
from carrel.core.errors import Refusal, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions import Session, lines
from carrel.core.store.record import Record, RecordType
from carrel.ports import LeaderLock, Ports, TranscriptMirror
from carrel.ports.logging import log_of

AGAIN: Final = 30_000
"""Milliseconds until what failed is tried again."""
LATE: Final = 60_000
"""Milliseconds for which something that was said earlier may still come to be seen: clocks of
several machines differ, and a commit may take its time."""
_PAGE: Final = 500
_IDLE: Final = 1.0
_GATHER: Final = 0.1
_BESIDE: Final = 5.0
Owner = tuple[str, str]
_log = log_of("carrel.transcripts")


def folder_of(agent: Record) -> str | None:
    """Where an agent's transcripts are mirrored, if anywhere."""
    return config_of(agent.body.get("config") or {}).transcripts_dir or None


async def run_mirror(
    ports: Ports, mirror: TranscriptMirror, turn: LeaderLock, stop: asyncio.Event
) -> None:
    """Keep the files up to date until told to stop, while it is this one's turn."""
    follower = MirrorFollower(ports, mirror)
    try:
        while not stop.is_set():
            try:
                if not await turn.try_acquire():
                    follower = MirrorFollower(ports, mirror)
                    await first_of(_BESIDE, stop.wait())
                    continue
                await first_of(None, follower.catch_up(), stop.wait())
            except Exception as problem:
                _log.warning("the transcripts are held up", **told_of(problem))
                await first_of(_BESIDE, stop.wait())
            else:
                if await first_of(_IDLE, stop.wait(), ports.events.wait_for_new(_IDLE)):
                    await first_of(_GATHER, stop.wait())
    finally:
        await turn.release()


class MirrorFollower:
    """Knows which agents' transcripts are mirrored, and which of them were looked at."""

    def __init__(self, ports: Ports, mirror: TranscriptMirror) -> None:
        self._ports, self._mirror = ports, mirror
        self._revision = -1
        self._wanted: Mapping[Owner, str] = {}
        self._slugs: Mapping[Owner, str] = {}
        self._done: dict[Owner, str] = {}
        """Agents all of whose sessions are mirrored, as far as they went then, and where."""
        self._put_off: dict[Owner, TimestampMs] = {}
        self._since: TimestampMs = 0
        self._seen: dict[tuple[str, str], Session] = {}
        """Sessions that were mirrored lately, as they were."""

    async def catch_up(self) -> int:
        """Mirror what was said since; how many sessions were looked at."""
        now, looked = self._ports.clock.now(), 0
        await self._look_at_agents()
        if not self._wanted:
            self._since = now
            return 0
        async for session in self._touched():
            looked += await self._mirrored(session)
        self._since = now
        self._seen = {
            key: session
            for key, session in self._seen.items()
            if session.last_entry_at >= now - LATE
        }
        for owner, folder in self._wanted.items():
            if self._done.get(owner) != folder and self._put_off.get(owner, 0) <= now:
                looked += await self._begin(owner, folder)
        return looked

    async def _look_at_agents(self) -> None:
        revision = await self._ports.records.revision()
        if revision == self._revision:
            return
        wanted: dict[Owner, str] = {}
        slugs: dict[Owner, str] = {}
        async for agent in iter_records(self._ports, "", RecordType.AGENT):
            if folder := folder_of(agent):
                wanted[agent.tenant, agent.id] = folder
                slugs[agent.tenant, agent.id] = agent.body["slug"]
        self._done = {owner: at for owner, at in self._done.items() if wanted.get(owner) == at}
        self._put_off.clear()
        self._wanted, self._slugs, self._revision = wanted, slugs, revision

    async def _touched(self) -> AsyncIterator[Session]:
        last: Session | None = None
        since = max(0, self._since - LATE)
        while found := await self._ports.sessions.touched(since, after=last, limit=_PAGE):
            for session in found:
                if (session.tenant, session.agent) in self._done:
                    yield session
            last = found[-1]

    async def _begin(self, owner: Owner, folder: str) -> int:
        """Look at everything that an agent ever said; what is said meanwhile is seen by then."""
        looked = 0
        try:
            others = {"/".join(other): its for other, its in self._wanted.items()}
            await self._mirror.claim(folder, "/".join(owner), others)
            self._done[owner] = folder
            self._seen = {
                key: one for key, one in self._seen.items() if (one.tenant, one.agent) != owner
            }
            before: tuple[TimestampMs, str] | None = None
            while found := await self._ports.sessions.list(*owner, before=before, limit=_PAGE):
                for session in found:
                    looked += await self._mirrored(session)
                before = (found[-1].last_entry_at, found[-1].id)
        except (OSError, Refusal) as problem:
            self._fail(owner, problem)
        return looked

    async def _mirrored(self, session: Session) -> bool:
        """Whether there was anything to do."""
        key, owner = (session.tenant, session.id), (session.tenant, session.agent)
        if self._seen.get(key) == session or owner not in self._done:
            return False
        try:
            whose = (self._done[owner], self._slugs[owner])
            await mirror_session(self._ports, self._mirror, session, *whose)
        except (OSError, Refusal) as problem:
            self._fail(owner, problem)
            return False
        self._seen[key] = session
        return True

    def _fail(self, owner: Owner, problem: Exception) -> None:
        self._done.pop(owner, None)
        self._put_off[owner] = self._ports.clock.now() + AGAIN
        tenant, agent = owner
        told = told_of(problem)
        _log.warning("an agent's transcripts are held up", tenant=tenant, agent=agent, **told)


async def mirror_session(
    ports: Ports, mirror: TranscriptMirror, session: Session, folder: str, slug: str
) -> None:
    """Write to a session's file, among those of its agent, what it lacks."""
    at = await mirror.held(folder, session, slug)
    while at < session.entries:
        limit = min(_PAGE, session.entries - at)
        said = await ports.sessions.read(session.tenant, session.id, after=at, limit=limit)
        if not said:
            return
        await mirror.add(folder, session, at, lines(said), len(said))
        at = said[-1].sequence


async def expire(ports: Ports, mirror: TranscriptMirror, before: TimestampMs) -> int:
    """Forget sessions in which nothing was said since, and their files; how many went.

    The files go first: what is still in the store afterwards is tried again.
    """
    gone, last = 0, None
    while found := await ports.sessions.touched(0, after=last, limit=_PAGE):
        old = [session for session in found if session.last_entry_at < before]
        await _remove_files(ports, mirror, old)
        gone += await ports.sessions.drop(old)
        if len(old) < len(found):
            break
        last = found[-1]
    return gone


async def _remove_files(
    ports: Ports, mirror: TranscriptMirror, sessions: Sequence[Session]
) -> None:
    by_agent: dict[Owner, list[Session]] = {}
    for session in sessions:
        by_agent.setdefault((session.tenant, session.agent), []).append(session)
    for (tenant, id), theirs in by_agent.items():
        [agent] = await ports.records.get(tenant, RecordType.AGENT, [id])
        if folder := agent and folder_of(agent):
            with suppress(ValidationError):
                await mirror.remove(folder, f"{tenant}/{id}", theirs)
