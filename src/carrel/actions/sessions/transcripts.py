"""Export of transcripts, and the rebuilding of their full-text index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.core.agents.agent import agent_from_record
from carrel.core.sessions.session import Session, encode_entries, encode_header
from carrel.core.store.record import RecordType
from carrel.ports import Ports

_PAGE_SIZE: Final = 500


async def export_jsonl(ports: Ports, session: Session) -> AsyncIterator[bytes]:
    """Yield the JSON lines of a transcript, up to the given session's last entry."""
    [agent] = await ports.records.get(session.tenant, RecordType.AGENT, [session.agent])
    yield encode_header(session, agent_from_record(agent).slug if agent else session.agent)
    position = 0
    while position < session.last_sequence:
        rows = await ports.sessions.read(
            session.tenant, session.agent, session.id, after=position, limit=_PAGE_SIZE
        )
        batch = tuple(entry for entry in rows if entry.sequence <= session.last_sequence)
        if not batch:
            return
        yield encode_entries(batch)
        position = batch[-1].sequence


async def reindex(ports: Ports, on_progress: ProgressCallback = no_progress) -> int:
    """Rebuild the full-text index of all entries; return their number.

    Entries are not found until they are indexed again.
    """
    progress = ProgressCounter(on_progress, "indexing entries")
    total = await ports.sessions.clear_index()
    progress.set_total(total)
    position, indexed = None, 0
    while True:
        position, count = await ports.sessions.index_batch(position, limit=_PAGE_SIZE)
        if not count:
            return indexed
        if indexed < total:  # entries may have been added meanwhile
            progress.add(min(count, total - indexed))
        indexed += count
