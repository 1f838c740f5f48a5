"""Storage of session transcripts, in the database and as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.search.bm25 import TermStatistics, TermWeight
from carrel.core.sessions.session import (
    EntryRemoval,
    LastEntryChanged,
    RemovedEntries,
    Session,
    SessionAppend,
    TranscriptEntry,
    TranscriptHit,
)
from carrel.core.store.idempotency import IdempotencyKey


class Sessions(Protocol):
    """Append-only transcripts with full-text search."""

    async def start(
        self, sessions: Sequence[Session], idempotency_key: IdempotencyKey | None = None
    ) -> tuple[Session, ...]:
        """Start each session; return the existing one if its agent has one of this id.

        The key is marked with the number of new sessions and the numbers of the ids, 0 for an id
        that is no UUID. Concurrent starts create one session.
        """

    async def append(
        self, additions: Sequence[SessionAppend]
    ) -> tuple[Session | LastEntryChanged | None, ...]:
        """Append entries with consecutive sequence numbers; return the updated sessions.

        None if the agent has no such session or it is closed, and LastEntryChanged if its last
        entry is not the expected one; this does not affect the others. When
        this returns, entries are durable and searchable, and idempotency keys are marked. If it
        raises, nothing was added. An entry without a run gets that of the session.
        """

    async def remove(self, removals: Sequence[EntryRemoval]) -> tuple[RemovedEntries | None, ...]:
        """Remove the last entry or all entries of each session, with their search terms.

        None if the agent has no such session or it is closed; this does not affect the others.
        """

    async def set_run(self, sessions: Sequence[Session]) -> None:
        """Store the run of each session."""

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        """End each session and return it; sessions that have ended are unchanged."""

    async def get(
        self, tenant: str, agent: str, ids: Sequence[str]
    ) -> tuple[Session | None, ...]: ...

    async def count(
        self, tenant: str, agents: Sequence[str], *, mode: Audience | None = None
    ) -> tuple[int, ...]:
        """Return the number of sessions of each agent, optionally of one audience."""

    async def list(
        self,
        tenant: str,
        agent: str,
        *,
        mode: Audience | None = None,
        before: tuple[TimestampMs, str] | None = None,
        limit: int = 100,
    ) -> tuple[Session, ...]:
        """Return an agent's sessions by (last_entry_at, id) descending."""

    async def read(
        self, tenant: str, agent: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        """Return entries past a sequence number: at least one, up to MAX_READ_BYTES."""

    async def read_latest(
        self, tenant: str, agent: str, id: str, *, before: int | None = None, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        """Return entries before a sequence number, newest first, as `read`."""

    async def read_of_run(
        self,
        tenant: str,
        agent: str,
        run: str,
        *,
        after: tuple[TimestampMs, str, int] = (0, "", 0),
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        """Return entries that a run wrote, by (at, session, sequence), as `read`."""

    async def count_terms(self, tenant: str, agent: str, terms: Sequence[str]) -> TermStatistics:
        """Count the entries of an agent with each of these terms, up to MAX_COUNTED each."""

    async def search(
        self,
        tenant: str,
        agent: str,
        terms: Sequence[TermWeight],
        *,
        mode: Audience | None = None,
        limit: int = 100,
    ) -> tuple[TranscriptHit, ...]:
        """Return entries with any of these terms, up to MAX_READ_BYTES.

        Ordered by the sum of the weights of their terms, then newest first.
        """

    async def list_updated(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        """Return sessions with last_entry_at >= `since`, by (last_entry_at, tenant, agent, id).

        Of all tenants: only for maintenance.
        """

    async def delete(self, sessions: Sequence[Session]) -> int:
        """Delete each session if it has no new entries; return how many were deleted."""

    async def clear_index(self) -> int:
        """Clear the full-text index; `index_batch` rebuilds it.

        Returns the number of entries.
        """

    async def index_batch(
        self, after: tuple[str, str, str, int] | None = None, *, limit: int = 500
    ) -> tuple[tuple[str, str, str, int] | None, int]:
        """Index a batch of entries past a position that are not indexed yet.

        Returns the new position, None at the end, and the number of indexed entries.
        """


class TranscriptFiles(Protocol):
    """Transcripts as files, one directory per agent.

    Lines are appended whole. After a crash a partial last line may remain; it is cut off at the
    next access. Methods raise OSError on failure or if the file was changed by another program.
    """

    async def check(self, folder: str) -> None:
        """Raise ValidationError, naming the directory, if files cannot be written to it.

        Creates nothing.
        """

    async def claim(self, folder: str, owner: str, other_owners: Mapping[str, str]) -> None:
        """Claim and create a directory for an owner.

        `other_owners` maps owners to their directories. Raises Conflict if one of them has it, and
        ValidationError if it is outside the allowed root.
        """

    async def find_position(self, folder: str, session: Session, agent: str) -> int:
        """Return the number of the last entry in a session's file, created if absent.

        An unreadable file is started again, and one with entries that were removed since. Raises
        ValidationError as `claim`, and Conflict if the file belongs to another session.
        """

    async def append(
        self, folder: str, session: Session, after: int, lines: bytes, last: int
    ) -> None:
        """Append lines up to entry `last` to a file whose position is `after`."""

    async def delete(self, folder: str, owner: str, sessions: Sequence[str]) -> None:
        """Delete the files of sessions with these ids if the owner has the directory.

        Absent ones are ignored.
        """
