"""New entries of several sessions of an agent in one request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.sessions.sessions import resolve_agent_id, session_key
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.sessions.session import Session, TranscriptEntry
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """A session, and the number of the last entry that is known of it."""

    session: str
    after: int = 0


@dataclass(frozen=True, slots=True)
class SessionRead:
    """A session and entries that follow the position; it may have more."""

    session: Session
    entries: tuple[TranscriptEntry, ...]


async def read_sessions(
    ports: Ports, actor: Actor, agent: str, positions: Sequence[ReadPosition], *, limit: int
) -> tuple[SessionRead | None, ...]:
    """Read at most `limit` entries after each position; None where there is no such session.

    Raises NotFound if the caller may not see the agent.
    """
    owner = await resolve_agent_id(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.SESSIONS, owner)
    ids = [position.session for position in positions]
    started_sessions = await ports.sessions.get(actor.tenant, owner, ids)

    async def read(position: ReadPosition, session: Session | None) -> SessionRead | None:
        if session is None:
            return None
        if session.last_sequence <= position.after or not session.entry_count:
            return SessionRead(session, ())
        key = session_key(session)
        rows = await ports.sessions.read(*key, after=position.after, limit=limit)
        return SessionRead(session, rows)

    return tuple(await asyncio.gather(*map(read, positions, started_sessions)))
