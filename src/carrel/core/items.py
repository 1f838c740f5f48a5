"""Shared items: keys, values and their encoding as paths of a tree.

A key may contain any character and slashes in any order, so it is encoded as a path. The encoding
is reversible, and no encoded path lies below another.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import reduce
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import MAX_SEGMENT_BYTES, Path, Scope, ScopeKind, TimestampMs
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Head

MAX_KEY_LENGTH: Final = 256
MAX_VALUE_BYTES: Final = 256 * 1024
"""Size of a value in UTF-8."""
PREVIEW_LENGTH: Final = 100

_MUST_ESCAPE: Final = re.compile(r"[^A-Za-z0-9 !#$&'()*,.:;<=>?@\[\]^_`{|}~+\"-]|^[~.]")
"""Characters that are percent-encoded; a dot or tilde only as the first character."""
_ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")
_PACKED_PREFIX: Final = "~"
_CONTINUATION: Final = "+"
_BITS_PER_CHARACTER: Final = 21
"""Fits every Unicode code point."""


class Item(Struct, frozen=True, gc=False):
    """Metadata of one item, without its value."""

    key: str
    version: int
    etag: str
    revision: int
    """Revision of the scope at the last write."""
    created_by: str
    """Id of the first writer: an agent or a person."""
    created_at: TimestampMs
    updated_at: TimestampMs
    blob: Blob


def parse_item_key(text: str) -> str:
    """Validate a key. Raises ValidationError."""
    if not 1 <= len(text) <= MAX_KEY_LENGTH:
        raise ValidationError(f"a key must have 1 to {MAX_KEY_LENGTH} characters")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValidationError("a key must not contain control characters")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValidationError("the key is not valid Unicode")
    return text


def encode_item_value(text: str) -> bytes:
    """Return the value as UTF-8. Raises ValidationError or WorkspaceTooLarge."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ValidationError("the value is not valid Unicode") from None
    if len(content) > MAX_VALUE_BYTES:
        raise WorkspaceTooLarge(
            f"the value has {len(content)} bytes; the limit is {MAX_VALUE_BYTES}",
            maxBytes=MAX_VALUE_BYTES,
            providedBytes=len(content),
        )
    return content


def item_path(key: str) -> Path:
    """Path of a key: percent-encoded if that fits one segment, else packed."""
    readable = _MUST_ESCAPE.sub(lambda match: _escape(match[0]), key)
    return Path(readable if len(readable) <= MAX_SEGMENT_BYTES else _pack_key(key))


def key_from_path(path: Path) -> str:
    """Inverse of item_path."""
    text = path.text
    if text.startswith(_PACKED_PREFIX):
        return _unpack_key(text)
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode()).decode()


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _pack_key(key: str) -> str:
    """Encode the code points as one large number in base64.

    The number starts with a 1, so that leading zeros survive. Every segment but the last ends with
    _CONTINUATION, so no packed path is a directory of another.
    """
    number = reduce(
        lambda number, character: number << _BITS_PER_CHARACTER | ord(character), key, 1
    )
    raw = number.to_bytes((number.bit_length() + 7) // 8)
    text = _PACKED_PREFIX + urlsafe_b64encode(raw).decode().rstrip("=")
    step = MAX_SEGMENT_BYTES - len(_CONTINUATION)
    parts = [text[start : start + step] for start in range(0, len(text), step)]
    return f"{_CONTINUATION}/".join(parts)


def _unpack_key(text: str) -> str:
    plain = text.removeprefix(_PACKED_PREFIX).replace(f"{_CONTINUATION}/", "")
    number = int.from_bytes(urlsafe_b64decode(plain + "=" * (-len(plain) % 4)))
    characters = []
    while number > 1:
        characters.append(chr(number & (1 << _BITS_PER_CHARACTER) - 1))
        number >>= _BITS_PER_CHARACTER
    return "".join(reversed(characters))


def person_items_scope(tenant: str, person: str) -> Scope:
    """Scope of the items shared by a person's private agents."""
    return Scope(tenant, ScopeKind.ITEMS, f"user-{person}")


def agent_items_scope(tenant: str, agent: str) -> Scope:
    """Scope of the items of a shared agent."""
    return Scope(tenant, ScopeKind.ITEMS, f"agent-{agent}")


def is_person_items_scope(scope: Scope) -> bool:
    return scope.kind is ScopeKind.ITEMS and scope.name.startswith("user-")


def agent_of_items_scope(scope: Scope) -> str | None:
    """Id of the agent whose items a scope holds; None for other scopes."""
    is_agents = scope.kind is ScopeKind.ITEMS and scope.name.startswith("agent-")
    return scope.name.removeprefix("agent-") if is_agents else None


def item_media_type(created_by: str, created_at: TimestampMs | None = None) -> str:
    """Media type of a value, with its first author and creation time as parameters.

    They are stored here because old versions are pruned. A new item has no `at` parameter: its
    first version has the time.
    """
    author = f"text/plain; by={created_by}"
    return author if created_at is None else f"{author}; at={created_at}"


def item_from_head(head: Head, etag: str) -> Item:
    """Build the item from a live head."""
    assert head.entry
    _, author, *created_parameter = head.entry.type.split("; ")
    return Item(
        key=key_from_path(head.path),
        version=head.version,
        etag=etag,
        revision=head.revision,
        created_by=author.removeprefix("by="),
        created_at=int(created_parameter[0].removeprefix("at=")) if created_parameter else head.at,
        updated_at=head.at,
        blob=head.entry.blob,
    )


def preview(value: str) -> str:
    """First PREVIEW_LENGTH characters of a value."""
    return value if len(value) <= PREVIEW_LENGTH else value[:PREVIEW_LENGTH] + "..."
