"""Replaces one text by a marker, in whatever form it is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.redaction.redactor import MIN_SECRET_LENGTH, secret_problem

MARKER: Final = "[REDACTED:purged]"
_JSON_DEPTH: Final = 2
"""Levels of JSON strings within JSON strings in which the text is found."""
_MARKER_ROUNDS: Final = 8
"""Rounds that insert markers; later rounds delete the text."""
_MAX_ROUNDS: Final = 16
_IDENTIFIER: Final = re.compile(r"[a-z]{2,8}_[0-9a-f]{24}")


class TextPurge:
    """One text and its forms within JSON. Contents are bytes of any kind.

    Raises ValidationError for a text that would damage more than it removes.
    """

    __slots__ = ("_pattern", "longest")

    def __init__(self, text: str) -> None:
        if problem := _find_problem(text):
            raise ValidationError(problem)
        forms = sorted({form.encode() for form in json_forms(text)}, key=len, reverse=True)
        self.longest = len(forms[0])
        """Bytes of the longest form."""
        self._pattern = re.compile(b"|".join(map(re.escape, forms)))

    def is_in(self, content: bytes) -> bool:
        return self._pattern.search(content) is not None

    def replace(self, content: bytes) -> bytes:
        """Return the content without the text; the same object if it has none.

        A marker can form the text again with what surrounds it, so this repeats.
        """
        for round_number in range(_MAX_ROUNDS):
            if not self.is_in(content):
                return content
            marker = MARKER.encode() if round_number < _MARKER_ROUNDS else b""
            content = self._pattern.sub(marker, content)
        return MARKER.encode()

    def replace_parts(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a content that is too large to hold without the text."""
        window = b""
        for part in parts:
            window = self.replace(window + part)
            cut = max(0, len(window) - self.longest)
            yield window[:cut]
            window = window[cut:]
        yield window

    def replace_text(self, text: str) -> str:
        encoded = text.encode("utf-8", "surrogatepass")
        replaced = self.replace(encoded)
        return text if replaced is encoded else replaced.decode("utf-8", "surrogatepass")

    def replace_json(self, text: str) -> str:
        """Return a JSON document without the text in its strings and names."""
        if not self.is_in(text.encode("utf-8", "surrogatepass")) and "\\u" not in text:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            return self.replace_text(text)
        replaced = self.replace_value(value)
        return text if replaced == value else json.dumps(replaced, ensure_ascii=False)

    def replace_value(self, value: Any) -> Any:
        """Return a JSON value without the text."""
        if isinstance(value, str):
            return self.replace_text(value)
        if isinstance(value, list):
            return [self.replace_value(item) for item in value]
        if isinstance(value, dict):
            return {
                self.replace_text(name): self.replace_value(item) for name, item in value.items()
            }
        return value


def _find_problem(text: str) -> str | None:
    """Reason why a text cannot be purged, without the text; None if it can."""
    if len(text) < MIN_SECRET_LENGTH:
        return f"a text to purge must have at least {MIN_SECRET_LENGTH} characters"
    if text in MARKER:
        return "this text is part of the marker that replaces it"
    if _IDENTIFIER.fullmatch(text):
        return "this text is an identifier; delete what it identifies instead"
    if any(text in word for word in _stored_words()):
        return "this text is a word that Carrel itself stores"
    problem = secret_problem("purged", text)
    return problem.replace("a value", "a text to purge") if problem else None


def _stored_words() -> Iterator[str]:
    """Values and field names of stored documents, which cannot be read without them."""
    for values in _subclasses(StrEnum):
        yield from (str(member) for member in values)
    for struct in _subclasses(Struct):
        yield from struct.__struct_encode_fields__


def _subclasses(base: type[Any]) -> Iterator[Any]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def json_forms(text: str) -> Iterator[str]:
    """The text as it is, and as a part of JSON strings."""
    forms = {text}
    yield text
    for _ in range(_JSON_DEPTH):
        forms = {
            json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            for form in forms
            for ascii_only in (True, False)
        }
        yield from forms
