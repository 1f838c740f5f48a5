"""What the deletion of an agent or a session still has to erase."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from carrel.core.agents.agent import agent_config, agent_from_record
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, RecordChange, RecordType


class PendingErasure(Struct, frozen=True, kw_only=True):
    """A deleted agent, or one deleted session, of which something may be left."""

    agent: str
    slug: str = ""
    """Empty if the agent's record is not known."""
    transcripts_folder: str = ""
    """Folder of the agent's transcript files; empty if there is none."""
    session: str | None = None
    """None: all that belongs to the agent."""
    started_at: TimestampMs = 0
    """Start of the session: a later one with the same id stays."""


def pending_erasure(
    agent: Record, session: str | None = None, started_at: TimestampMs = 0
) -> PendingErasure:
    """Return what to erase of a deleted agent, or of one of its sessions."""
    return PendingErasure(
        agent=agent.id,
        slug=agent_from_record(agent).slug,
        transcripts_folder=agent_config(agent).transcripts_dir or "",
        session=session,
        started_at=started_at,
    )


def erasure_change(tenant: str, id: str, erasure: PendingErasure | None) -> RecordChange:
    """Change that stores what is to be erased; None: all of it was."""
    body = None if erasure is None else msgspec.to_builtins(erasure)
    return RecordChange(tenant, RecordType.ERASURE, id, body)
