"""Positions in the list of an agent's sessions, as texts for clients."""

from __future__ import annotations

import base64
import re
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions.session import Session
from carrel.core.sessions.session_ids import parse_session_id

_CURSOR_PATTERN: Final = re.compile(r"([0-9]{1,18})\.([A-Za-z0-9_-]{1,1400})")


def encode_cursor(last: Session) -> str:
    """Position after a session."""
    return f"{last.last_entry_at}.{_encode_text(last.id)}"


def parse_cursor(cursor: str) -> tuple[TimestampMs, str] | None:
    """Time and id of the session at a position; None for an empty one. Raises ValidationError."""
    if not cursor:
        return None
    match = _CURSOR_PATTERN.fullmatch(cursor)
    try:
        if match is not None:
            return int(match[1]), parse_session_id(_decode_text(match[2]))
    except (ValueError, ValidationError):
        pass
    raise ValidationError("invalid cursor")


def _encode_text(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode_text(text: str) -> str:
    """Raises ValueError."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
