"""Consistency check of sessions and their transcript entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.maintenance.findings import FindingList
from carrel.core.runs import Audience
from carrel.core.sessions.session import SpeakerRole
from carrel.core.sessions.session_ids import parse_session_id

Row = Sequence[Any]
_MODES: Final = frozenset(Audience)
_ROLES: Final = frozenset(SpeakerRole)


class TranscriptCheck:
    """Receives every session, then every entry, both ordered by key."""

    def __init__(self, findings: FindingList) -> None:
        self._findings = findings
        self._remaining: dict[int, int] = {}
        """Entries of each session not yet read, by fingerprint of its key."""
        self._last_sequences: dict[int, int] = {}
        self._with_removals: set[int] = set()
        """Sessions whose entries have gaps."""
        self._last_entry: tuple[str, str, str, int] = ("", "", "", 0)
        self.checks: Mapping[str, Callable[[Row], None]] = {
            "session": self._check_session,
            "session_entry": self._check_entry,
        }

    def finish(self) -> None:
        if incomplete := sum(count > 0 for count in self._remaining.values()):
            text = f"{incomplete} sessions have fewer entries than they state"
            self._findings.error("sessions", text)

    def _check_session(self, row: Row) -> None:
        tenant, agent, id, mode, _, started_at, ended_at, entry_count, last_sequence = row[:9]
        last_entry_at = row[9]
        subject = f"session {id} of {agent} of {tenant}"
        self._remaining[hash((tenant, agent, id))] = entry_count
        self._last_sequences[hash((tenant, agent, id))] = last_sequence
        if last_sequence != entry_count:
            self._with_removals.add(hash((tenant, agent, id)))
        if not _is_session_id(id):
            self._findings.error(subject, "its id is not a session id")
        if mode not in _MODES:
            self._findings.error(subject, "its mode is unknown")
        is_countable = 0 <= entry_count <= last_sequence
        if not is_countable or last_entry_at < started_at or (ended_at or 0) < 0:
            self._findings.error(subject, "its entry count or timestamps are invalid")

    def _check_entry(self, row: Row) -> None:
        tenant, agent, session, sequence, _, role, content = row[:7]
        subject = f"entry {sequence} of session {session} of {agent} of {tenant}"
        key = hash((tenant, agent, session))
        if key not in self._remaining:
            self._findings.error(subject, "the session is missing")
            return
        is_first = self._last_entry[:3] != (tenant, agent, session)
        previous = 0 if is_first else self._last_entry[3]
        self._last_entry = (tenant, agent, session, sequence)
        self._remaining[key] -= 1
        has_removals = key in self._with_removals
        is_next = sequence > previous if has_removals else sequence == previous + 1
        if not is_next or sequence > self._last_sequences[key]:
            self._findings.error(subject, f"follows entry {previous}")
        elif self._remaining[key] < 0:
            self._findings.error(subject, "exceeds the session's entry count")
        if role not in _ROLES:
            self._findings.error(subject, "its role is unknown")
        if not _is_text(content):
            self._findings.error(subject, "its content is not text")


def _is_session_id(id: str) -> bool:
    try:
        parse_session_id(id)
    except ValidationError:
        return False
    return True


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
