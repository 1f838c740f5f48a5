"""Deletion of content without a trace in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from carrel.core.identifiers import Scope, TimestampMs


class Erasure(Protocol):
    """Deletes what commits keep for ever: histories and the bytes of deleted rows."""

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        """Delete the files, histories and own contents of scopes; return the versions.

        Their runs keep status and times, but lose snapshot, variables and log; a running one is
        cancelled at this time.

        A scope's number and revision remain, so that no revision is used twice. Contents that other
        scopes refer to remain too. Large contents outside the database become unreferenced, and
        garbage collection deletes them. Unknown and empty scopes are ignored, so an interrupted
        call can be repeated.
        """

    async def scrub(self) -> None:
        """Remove the bytes of deleted rows from the database's own files.

        PostgreSQL does this itself, with VACUUM.
        """

    async def find_orphans(self) -> tuple[tuple[str, str], ...]:
        """Return tenant and id of deleted agents that still have files or sessions.

        An agent is deleted if it has no record and the audit says `delete an agent`; a lost record
        alone deletes nothing.
        """
