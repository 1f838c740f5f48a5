"""What we ask of the world for what is said in sessions: to keep it, and to show it as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.sessions import Session, SessionAppend, TranscriptEntry, TranscriptHit


class Sessions(Protocol):
    """What was said in agents' sessions: only ever appended to, and found again by its words."""

    async def start(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        """Begin each; where its tenant has one of that id already, return that as it is.

        Of many who start the same one, one begins it. Whose it is, is for the caller to see.
        """

    async def append(self, additions: Sequence[SessionAppend]) -> tuple[Session | None, ...]:
        """Add to each session in order, numbered on from its last, and return it as it became.

        None where its agent has no such session, or it is closed; that does not stop the others.
        Once this returns, what was added survives the death of the process and of the machine, can
        be found by its words, and has marked its receipt. If it raises, nothing was added.
        """

    async def close(
        self, tenant: str, agent: str, ids: Sequence[str], at: TimestampMs
    ) -> tuple[Session | None, ...]:
        """End each, and return it as it became; what has ended stays as it ended."""

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Session | None, ...]: ...

    async def count(self, tenant: str, agents: Sequence[str]) -> tuple[int, ...]:
        """How many sessions each of these agents has had."""

    async def list(
        self,
        tenant: str,
        agent: str,
        *,
        mode: Audience | None = None,
        before: tuple[TimestampMs, str] | None = None,
        limit: int = 100,
    ) -> tuple[Session, ...]:
        """An agent's sessions by (last, id), the newest first, those before a place in that order.

        A mode leaves only its own.
        """

    async def read(
        self, tenant: str, id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[TranscriptEntry, ...]:
        """What was said past a number, in order: one at least if there is any, some MiB at most."""

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
        """What has words that begin with each of these, or with any; the newest first.

        Words are those of ``core.search``. No words find nothing. Some MiB at most.
        """

    async def touched(
        self, since: TimestampMs, *, after: Session | None = None, limit: int = 500
    ) -> tuple[Session, ...]:
        """Sessions whose last is no older, by (last, tenant, id), those past one in that order.

        Of all tenants: for upkeep, never for a caller.
        """

    async def drop(self, sessions: Sequence[Session]) -> int:
        """Forget each whole, if nothing was said in it since; how many went."""

    async def unindex(self) -> int:
        """Forget all words, so that nothing is found until `index` has gone through everything.

        Returns how much was said in all.
        """

    async def index(
        self, after: tuple[str, str, int] | None = None, *, limit: int = 500
    ) -> tuple[tuple[str, str, int] | None, int]:
        """Let some be found by their words again, those past a place, where they cannot be yet.

        Returns the place that this has come to, None where that is the end, and how many it was.
        """


class TranscriptMirror(Protocol):
    """Where transcripts stand as files, each agent's in a directory of its own.

    Lines are added whole. Whoever dies while writing leaves a last line that is torn, which is cut
    off when the file is next looked at. Verbs raise OSError where the place does not do its part,
    or where somebody else has changed the file meanwhile.
    """

    async def claim(self, folder: str, owner: str, others: Mapping[str, str]) -> None:
        """Let an owner have a directory, which is made, unless one of the others has it.

        Others are owners with the directories that they want. Raises Taken, and Malformed where
        the directory is outside of all that may be written to.
        """

    async def held(self, folder: str, session: Session, agent: str) -> int:
        """How many entries a session's file has, which is begun with its agent's slug if there
        is none.

        A file that cannot be what was written is begun anew. Raises Malformed as above, and Taken
        where the file is of another session.
        """

    async def add(
        self, folder: str, session: Session, after: int, lines: bytes, count: int
    ) -> None:
        """Add these lines of so many entries to a file that was just seen to hold ``after``."""

    async def remove(self, folder: str, owner: str, sessions: Sequence[Session]) -> None:
        """Forget the files of these, if the owner has the directory; an absent one is no error."""
