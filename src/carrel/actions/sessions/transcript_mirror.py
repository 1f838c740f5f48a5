"""Writes session transcripts to files, shortly after each entry.

The store is the source of truth. The files themselves tell what they lack, so no progress is
stored; a new process checks the files of all sessions once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from carrel.actions.catalog.follower import error_fields, wait_for_first
from carrel.actions.records import iter_records
from carrel.core.agents.agent import agent_config, agent_from_record
from carrel.core.errors import Refusal, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions.session import Session, encode_entries
from carrel.core.store.record import Record, RecordType
from carrel.ports import LeaderLock, Ports, TranscriptFiles
from carrel.ports.logging import get_logger

RETRY_MS: Final = 30_000
"""Milliseconds before a failed agent is retried."""
LATE_COMMIT_MS: Final = 60_000
"""Milliseconds an entry may appear late: clocks differ, and commits take time."""
_PAGE_SIZE: Final = 500
_POLL_SECONDS: Final = 1.0
_BATCH_DELAY_SECONDS: Final = 0.1
_LOCK_RETRY_SECONDS: Final = 5.0
Owner = tuple[str, str]
_log = get_logger("carrel.transcripts")


def transcript_folder(agent: Record) -> str | None:
    """Return the folder of an agent's transcript files, None if not configured."""
    return agent_config(agent).transcripts_dir or None


async def run_mirror(
    ports: Ports, mirror: TranscriptFiles, lock: LeaderLock, stop: asyncio.Event
) -> None:
    """Keep transcript files up to date until `stop` is set, holding the leader lock."""
    follower = MirrorFollower(ports, mirror)
    try:
        while not stop.is_set():
            try:
                if not await lock.try_acquire():
                    follower = MirrorFollower(ports, mirror)
                    await wait_for_first(_LOCK_RETRY_SECONDS, stop.wait())
                    continue
                await wait_for_first(None, follower.catch_up(), stop.wait())
            except Exception as problem:
                _log.warning("transcript mirroring failed", **error_fields(problem))
                await wait_for_first(_LOCK_RETRY_SECONDS, stop.wait())
            else:
                if await wait_for_first(
                    _POLL_SECONDS, stop.wait(), ports.events.wait_for_new(_POLL_SECONDS)
                ):
                    await wait_for_first(_BATCH_DELAY_SECONDS, stop.wait())
    finally:
        await lock.release()


class MirrorFollower:
    """Tracks agents with transcript files and mirrors their new entries."""

    def __init__(self, ports: Ports, mirror: TranscriptFiles) -> None:
        self._ports, self._mirror = ports, mirror
        self._revision = -1
        self._folders: Mapping[Owner, str] = {}
        self._slugs: Mapping[Owner, str] = {}
        self._claimed: dict[Owner, str] = {}
        """Folders of agents whose sessions were all mirrored once."""
        self._retry_at: dict[Owner, TimestampMs] = {}
        self._since: TimestampMs = 0
        self._mirrored_sessions: dict[tuple[str, str, str], Session] = {}
        """Recently mirrored sessions, as they were then."""

    async def catch_up(self) -> int:
        """Mirror new entries; return how many sessions were written."""
        now, mirrored = self._ports.clock.now(), 0
        await self._poll_agents()
        if not self._folders:
            self._since = now
            return 0
        async for session in self._iter_touched():
            mirrored += await self._mirror_if_changed(session)
        self._since = now
        self._mirrored_sessions = {
            key: session
            for key, session in self._mirrored_sessions.items()
            if session.last_entry_at >= now - LATE_COMMIT_MS
        }
        for owner, folder in self._folders.items():
            if self._claimed.get(owner) != folder and self._retry_at.get(owner, 0) <= now:
                mirrored += await self._mirror_agent(owner, folder)
        return mirrored

    async def _poll_agents(self) -> None:
        revision = await self._ports.records.revision()
        if revision == self._revision:
            return
        folders: dict[Owner, str] = {}
        slugs: dict[Owner, str] = {}
        async for agent in iter_records(self._ports, "", RecordType.AGENT):
            if folder := transcript_folder(agent):
                folders[agent.tenant, agent.id] = folder
                slugs[agent.tenant, agent.id] = agent_from_record(agent).slug
        self._claimed = {
            owner: folder_claimed
            for owner, folder_claimed in self._claimed.items()
            if folders.get(owner) == folder_claimed
        }
        self._retry_at.clear()
        self._folders, self._slugs, self._revision = folders, slugs, revision

    async def _iter_touched(self) -> AsyncIterator[Session]:
        last: Session | None = None
        since = max(0, self._since - LATE_COMMIT_MS)
        while batch := await self._ports.sessions.list_updated(since, after=last, limit=_PAGE_SIZE):
            for session in batch:
                if (session.tenant, session.agent) in self._claimed:
                    yield session
            last = batch[-1]

    async def _mirror_agent(self, owner: Owner, folder: str) -> int:
        """Mirror all sessions of an agent; the next poll finds entries added meanwhile."""
        mirrored = 0
        try:
            folders_by_owner = {
                "/".join(other): other_folder for other, other_folder in self._folders.items()
            }
            await self._mirror.claim(folder, "/".join(owner), folders_by_owner)
            self._claimed[owner] = folder
            self._mirrored_sessions = {
                key: session_before
                for key, session_before in self._mirrored_sessions.items()
                if (session_before.tenant, session_before.agent) != owner
            }
            before: tuple[TimestampMs, str] | None = None
            while batch := await self._ports.sessions.list(*owner, before=before, limit=_PAGE_SIZE):
                for session in batch:
                    mirrored += await self._mirror_if_changed(session)
                before = (batch[-1].last_entry_at, batch[-1].id)
        except (OSError, Refusal) as problem:
            self._schedule_retry(owner, problem)
        return mirrored

    async def _mirror_if_changed(self, session: Session) -> bool:
        """Mirror a session; return whether there was anything to do."""
        owner = (session.tenant, session.agent)
        key = (*owner, session.id)
        if self._mirrored_sessions.get(key) == session or owner not in self._claimed:
            return False
        try:
            target = (self._claimed[owner], self._slugs[owner])
            await mirror_session(self._ports, self._mirror, session, *target)
            [current] = await self._ports.sessions.get(session.tenant, session.agent, [session.id])
            if current is None:  # erased while its file was written
                await self._mirror.delete(target[0], "/".join(owner), [session.id])
        except (OSError, Refusal) as problem:
            self._schedule_retry(owner, problem)
            return False
        self._mirrored_sessions[key] = session
        return True

    def _schedule_retry(self, owner: Owner, problem: Exception) -> None:
        self._claimed.pop(owner, None)
        self._retry_at[owner] = self._ports.clock.now() + RETRY_MS
        tenant, agent = owner
        fields = error_fields(problem)
        _log.warning(
            "transcript mirroring of an agent failed", tenant=tenant, agent=agent, **fields
        )


async def mirror_session(
    ports: Ports, mirror: TranscriptFiles, session: Session, folder: str, slug: str
) -> None:
    """Append the missing entries to a session's file."""
    position = await mirror.find_position(folder, session, slug)
    while position < session.last_sequence:
        entries = await ports.sessions.read(
            session.tenant, session.agent, session.id, after=position, limit=_PAGE_SIZE
        )
        entries = tuple(entry for entry in entries if entry.sequence <= session.last_sequence)
        if not entries:
            return
        last = entries[-1].sequence
        await mirror.append(folder, session, position, encode_entries(entries), last)
        position = last


async def delete_expired(ports: Ports, mirror: TranscriptFiles, before: TimestampMs) -> int:
    """Delete sessions without entries since a time, and their files; return how many.

    Files are deleted first: sessions still in the store are retried.
    """
    deleted, last = 0, None
    while batch := await ports.sessions.list_updated(0, after=last, limit=_PAGE_SIZE):
        expired = [session for session in batch if session.last_entry_at < before]
        await _remove_files(ports, mirror, expired)
        deleted += await ports.sessions.delete(expired)
        if len(expired) < len(batch):
            break
        last = batch[-1]
    return deleted


async def _remove_files(ports: Ports, mirror: TranscriptFiles, sessions: Sequence[Session]) -> None:
    by_agent: dict[Owner, list[Session]] = {}
    for session in sessions:
        by_agent.setdefault((session.tenant, session.agent), []).append(session)
    for (tenant, id), agent_sessions in by_agent.items():
        [agent] = await ports.records.get(tenant, RecordType.AGENT, [id])
        if folder := agent and transcript_folder(agent):
            with suppress(ValidationError):
                ids = [session.id for session in agent_sessions]
                await mirror.delete(folder, f"{tenant}/{id}", ids)
