"""Examining transcripts: whether each session holds all that was said in it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.maintenance.findings import FindingList
from carrel.core.runs import Audience
from carrel.core.sessions import SpeakerRole, session_id

Row = Sequence[Any]
_MODES: Final = frozenset(Audience)
_ROLES: Final = frozenset(SpeakerRole)


class TranscriptCheck:
    """Takes every session, then everything that was said, both in the order of their keys."""

    def __init__(self, findings: FindingList) -> None:
        self._findings = findings
        self._missing: dict[int, int] = {}
        """How much of each session has not been seen yet, by a fingerprint of its key."""
        self._at: tuple[str, str, int] = ("", "", 0)
        self.looks: Mapping[str, Callable[[Row], None]] = {
            "session": self._session,
            "utterance": self._utterance,
        }

    def finish(self) -> None:
        if lacking := sum(count > 0 for count in self._missing.values()):
            text = f"{lacking} of them say that more was said than there is"
            self._findings.error("sessions", text)

    def _session(self, row: Row) -> None:
        tenant, id, _, mode, _, started, ended, entries, last = row
        subject = f"session {id} of {tenant}"
        self._missing[hash((tenant, id))] = entries
        if not _spelt(id):
            self._findings.error(subject, "its id is not a UUID in its canonical spelling")
        if mode not in _MODES:
            self._findings.error(subject, "its mode is none that is known")
        if entries < 0 or last < started or (ended is not None and ended < 0):
            self._findings.error(subject, "its numbers cannot be")

    def _utterance(self, row: Row) -> None:
        tenant, session, number, _, role, content = row[:6]
        subject = f"entry {number} of session {session} of {tenant}"
        key = hash((tenant, session))
        if key not in self._missing:
            self._findings.error(subject, "the session is missing")
            return
        before = self._at[2] if self._at[:2] == (tenant, session) else 0
        self._at = (tenant, session, number)
        self._missing[key] -= 1
        if number != before + 1:
            self._findings.error(subject, f"comes after entry {before}")
        elif self._missing[key] < 0:
            self._findings.error(subject, "the session says that less was said")
        if role not in _ROLES:
            self._findings.error(subject, "nobody of that role can speak")
        if not _text(content):
            self._findings.error(subject, "what was said is not text")


def _spelt(id: str) -> bool:
    try:
        return session_id(id) == id
    except ValidationError:
        return False


def _text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
