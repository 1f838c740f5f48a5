"""Ids of sessions, and the names of their transcript files."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.redaction.text_purge import json_forms

MAX_ID_LENGTH: Final = 255
_MAX_NAME_BYTES: Final = 200
"""Longest encoded file name without its suffix; longer ones become a digest."""
_SUFFIX: Final = ".jsonl"
MAX_FILE_NAME_LENGTH: Final = _MAX_NAME_BYTES + len(_SUFFIX)
_UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FIELD_NAME: Final = re.compile(rb'\\*"(?:id|session|session_id|sessionId)\\*"\s*:\s*\\*"')
_PLAIN_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")


def parse_session_id(text: str) -> str:
    """Return a session id, as it is. Raises ValidationError."""
    if not 1 <= len(text) <= MAX_ID_LENGTH or _REFUSED.search(text):
        raise ValidationError(
            f"a session id must have 1 to {MAX_ID_LENGTH} characters and no control characters"
        )
    return text


def new_session_id(seed: str) -> str:
    """Derive a version 4 UUID from an unguessable text."""
    hex_digits = hashlib.sha256(seed.encode()).hexdigest()
    variant = "89ab"[int(hex_digits[16], 16) % 4]
    return session_id_from_number(
        int(f"{hex_digits[:12]}4{hex_digits[13:16]}{variant}{hex_digits[17:32]}", 16)
    )


def number_from_session_id(id: str) -> int:
    """Number of a UUID, to mark a key with what was created; 0 for any other id."""
    return int(id.replace("-", ""), 16) if _UUID.fullmatch(id) else 0


def session_id_from_number(number: int) -> str:
    """UUID of this number."""
    digits = f"{number:032x}"
    return "-".join(digits[start:end] for start, end in pairwise((0, 8, 12, 16, 20, 32)))


def session_field(id: str) -> re.Pattern[bytes]:
    """Return a pattern of fields that name a session in JSON, or in JSON within strings of it."""
    forms = b"|".join(sorted({re.escape(form.encode()) for form in json_forms(id)}))
    return re.compile(_FIELD_NAME.pattern + b"(?:" + forms + rb')\\*"')


def transcript_file_name(id: str) -> str:
    """Return the file name of a session's transcript: unique, also if case is ignored.

    Lower-case letters, digits, `-` and `_` stay; every other byte becomes `=` and two hexadecimal
    digits. A name that would be too long is `==` and the SHA-256 of the id.
    """
    encoded = id.encode()
    name = "".join(chr(byte) if byte in _PLAIN_BYTES else f"={byte:02x}" for byte in encoded)
    if len(name) > _MAX_NAME_BYTES:
        name = f"=={hashlib.sha256(encoded).hexdigest()}"
    return name + _SUFFIX
