"""Validation of single-line texts, e-mail addresses and slugs."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.identifiers import parse_slug

MAX_LINE_LENGTH: Final = 200
MAX_EMAIL_LENGTH: Final = 254

LINE_PATTERN: Final = r"^[^ \x00-\x1f\x7f-\x9f\u2028\u2029][^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""One line that does not start with a blank. A JSON Schema pattern.

Here applied as a full match.
"""

EMAIL_PATTERN: Final = r"^[^\s@\x00-\x1f\x7f-\x9f]{1,64}@[^\s@\x00-\x1f\x7f-\x9f]{1,189}$"

RESERVED_SLUGS: Final = frozenset(
    {"admin", "all", "api", "carrel", "catalog", "defaults", "items", "me", "new"}
    | {"none", "platform", "self", "system", "v1", "www"}
)
"""Slugs that would be ambiguous in a URL path."""

_LINE_REGEX: Final = re.compile(LINE_PATTERN[1:-1])
_EMAIL_REGEX: Final = re.compile(EMAIL_PATTERN[1:-1])


def single_line(text: str, field_name: str) -> str:
    """Return one line of text in NFC.

    Raises ValidationError, without the text in the message.
    """
    if not _LINE_REGEX.fullmatch(text) or len(text) > MAX_LINE_LENGTH or not _is_encodable(text):
        raise ValidationError(f"{field_name} must be one line of 1 to {MAX_LINE_LENGTH} characters")
    return unicodedata.normalize("NFC", text)


def parse_email(text: str) -> str:
    if not _EMAIL_REGEX.fullmatch(text) or len(text) > MAX_EMAIL_LENGTH or not _is_encodable(text):
        raise ValidationError("email must be an e-mail address")
    return unicodedata.normalize("NFC", text)


def email_key(text: str) -> str:
    """Case-insensitive key of an e-mail address."""
    return unicodedata.normalize("NFC", text.casefold())


def parse_unreserved_slug(text: str) -> str:
    """Return a slug that is not reserved. Raises ValidationError."""
    if parse_slug(text) in RESERVED_SLUGS:
        raise ValidationError(f'slug "{text}" is reserved')
    return text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
