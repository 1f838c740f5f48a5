"""What people call things and each other: one line of text, an address, a slug that is free."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.identifiers import slug

LONGEST_LINE: Final = 200
LONGEST_EMAIL: Final = 254

LINE: Final = r"^[^ \x00-\x1f\x7f-\x9f\u2028\u2029][^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""One line that does not begin with a blank. Searchable by any engine; fullmatch decides here."""

EMAIL: Final = r"^[^\s@\x00-\x1f\x7f-\x9f]{1,64}@[^\s@\x00-\x1f\x7f-\x9f]{1,189}$"

RESERVED: Final = frozenset(
    {"admin", "all", "api", "carrel", "catalog", "defaults", "items", "me", "new"}
    | {"none", "platform", "self", "system", "v1", "www"}
)
"""Slugs that would read as something else in a path: nothing may be called so."""

_LINE: Final = re.compile(LINE[1:-1])
_EMAIL: Final = re.compile(EMAIL[1:-1])


def single_line(text: str, what: str) -> str:
    """One line of text in NFC: a name, a title. Raises Malformed, without repeating it."""
    if not _LINE.fullmatch(text) or len(text) > LONGEST_LINE or not _writable(text):
        raise ValidationError(f"{what} must be one line of 1 to {LONGEST_LINE} characters")
    return unicodedata.normalize("NFC", text)


def email(text: str) -> str:
    if not _EMAIL.fullmatch(text) or len(text) > LONGEST_EMAIL or not _writable(text):
        raise ValidationError("email must be an e-mail address")
    return unicodedata.normalize("NFC", text)


def email_key(text: str) -> str:
    """What two addresses have in common that differ only in letter case."""
    return unicodedata.normalize("NFC", text.casefold())


def free_slug(text: str) -> str:
    """A slug that means nothing else in a path. Raises Malformed."""
    if slug(text) in RESERVED:
        raise ValidationError(f"the slug {text} is reserved")
    return text


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
