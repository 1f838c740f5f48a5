"""Consistency check of sessions and their transcript entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.maintenance.findings import FindingList
from carrel.core.runs import Audience
from carrel.core.sessions import SpeakerRole, parse_session_id

Row = Sequence[Any]
_MODES: Final = frozenset(Audience)
_ROLES: Final = frozenset(SpeakerRole)


class TranscriptCheck:
    """Receives every session, then every entry, both ordered by key."""

    def __init__(self, findings: FindingList) -> None:
        self._findings = findings
        self._remaining: dict[int, int] = {}
        """Entries of each session not yet read, by fingerprint of its key."""
        self._last_entry: tuple[str, str, int] = ("", "", 0)
        self.checks: Mapping[str, Callable[[Row], None]] = {
            "session": self._check_session,
            "session_entry": self._check_entry,
        }

    def finish(self) -> None:
        if incomplete := sum(count > 0 for count in self._remaining.values()):
            text = f"{incomplete} sessions have fewer entries than they state"
            self._findings.error("sessions", text)

    def _check_session(self, row: Row) -> None:
        tenant, id, _, mode, _, started_at, ended_at, entry_count, last_entry_at = row
        subject = f"session {id} of {tenant}"
        self._remaining[hash((tenant, id))] = entry_count
        if not _is_canonical_uuid(id):
            self._findings.error(subject, "its id is not a canonical UUID")
        if mode not in _MODES:
            self._findings.error(subject, "its mode is unknown")
        if entry_count < 0 or last_entry_at < started_at or (ended_at or 0) < 0:
            self._findings.error(subject, "its entry count or timestamps are invalid")

    def _check_entry(self, row: Row) -> None:
        tenant, session, sequence, _, role, content = row[:6]
        subject = f"entry {sequence} of session {session} of {tenant}"
        key = hash((tenant, session))
        if key not in self._remaining:
            self._findings.error(subject, "the session is missing")
            return
        previous = self._last_entry[2] if self._last_entry[:2] == (tenant, session) else 0
        self._last_entry = (tenant, session, sequence)
        self._remaining[key] -= 1
        if sequence != previous + 1:
            self._findings.error(subject, f"follows entry {previous}")
        elif self._remaining[key] < 0:
            self._findings.error(subject, "exceeds the session's entry count")
        if role not in _ROLES:
            self._findings.error(subject, "its role is unknown")
        if not _is_text(content):
            self._findings.error(subject, "its content is not text")


def _is_canonical_uuid(id: str) -> bool:
    try:
        return parse_session_id(id) == id
    except ValidationError:
        return False


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
