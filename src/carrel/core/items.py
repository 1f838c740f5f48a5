"""Shared items: what a key may be, where it stands in a tree, and what is known of one.

A key is no path: it may hold slashes in any order and characters that no file name has. So each is
written as a path of its own, from which it can be read again, and no two such paths are nested.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import reduce
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import LONGEST_SEGMENT, Path, Scope, ScopeKind, TimestampMs
from carrel.core.store.tree import Blob, Head

LONGEST_KEY: Final = 256
LARGEST_VALUE: Final = 256 * 1024
"""Bytes of a value, as UTF-8."""
PREVIEW: Final = 100

_ESCAPED: Final = re.compile(r"[^A-Za-z0-9 !#$&'()*,.:;<=>?@\[\]^_`{|}~+\"-]|^[~.]")
"""What does not stand for itself in a path; a dot or a tilde may, but not as the first."""
_ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")
_PACKED: Final = "~"
_GOES_ON: Final = "+"
_BITS: Final = 21
"""Enough for any character."""


class Item(Struct, frozen=True, gc=False):
    """One value under its key, without the value."""

    key: str
    version: int
    etag: str
    revision: int
    """Of its scope, when it was last written."""
    created_by: str
    """Who wrote it first, as an id: an agent, or a person who did it by hand."""
    created_at: TimestampMs
    updated_at: TimestampMs
    blob: Blob


def item_key(text: str) -> str:
    """A key that an item may have. Raises Malformed."""
    if not 1 <= len(text) <= LONGEST_KEY:
        raise ValidationError(f"a key has 1 to {LONGEST_KEY} characters")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValidationError("a key has no control characters")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValidationError("the key is not valid Unicode")
    return text


def item_value(text: str) -> bytes:
    """A value as it is stored. Raises Malformed or TooLarge."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ValidationError("the value is not valid Unicode") from None
    if len(content) > LARGEST_VALUE:
        raise WorkspaceTooLarge(
            f"the value has {len(content)} bytes; an item may have {LARGEST_VALUE}",
            maxBytes=LARGEST_VALUE,
            providedBytes=len(content),
        )
    return content


def item_path(key: str) -> Path:
    """Where a key stands: readable where it is short and plain, else packed."""
    readable = _ESCAPED.sub(lambda found: _escape(found[0]), key)
    return Path(readable if len(readable) <= LONGEST_SEGMENT else _packed(key))


def key_at(path: Path) -> str:
    """The key that stands there."""
    text = path.text
    if text.startswith(_PACKED):
        return _unpacked(text)
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode()


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _packed(key: str) -> str:
    """The characters as one large number after a 1, which keeps those that are zero.

    A segment that goes on says so, and hence is never the last one of another key.
    """
    number = reduce(lambda so_far, character: so_far << _BITS | ord(character), key, 1)
    raw = number.to_bytes((number.bit_length() + 7) // 8)
    text = _PACKED + urlsafe_b64encode(raw).decode().rstrip("=")
    step = LONGEST_SEGMENT - len(_GOES_ON)
    parts = [text[at : at + step] for at in range(0, len(text), step)]
    return f"{_GOES_ON}/".join(parts)


def _unpacked(text: str) -> str:
    plain = text.removeprefix(_PACKED).replace(f"{_GOES_ON}/", "")
    number = int.from_bytes(urlsafe_b64decode(plain + "=" * (-len(plain) % 4)))
    characters = []
    while number > 1:
        characters.append(chr(number & (1 << _BITS) - 1))
        number >>= _BITS
    return "".join(reversed(characters))


def items_of_person(tenant: str, person: str) -> Scope:
    """What all private agents of a person share."""
    return Scope(tenant, ScopeKind.ITEMS, f"user-{person}")


def items_of_agent(tenant: str, agent: str) -> Scope:
    """What a shared agent has to itself."""
    return Scope(tenant, ScopeKind.ITEMS, f"agent-{agent}")


def is_of_a_person(scope: Scope) -> bool:
    return scope.kind is ScopeKind.ITEMS and scope.name.startswith("user-")


def item_type(created_by: str, created_at: TimestampMs | None = None) -> str:
    """The media type of a value, which tells who wrote it first and when: history is pruned.

    Of an item that is new only who: when it was written says the version itself.
    """
    author = f"text/plain; by={created_by}"
    return author if created_at is None else f"{author}; at={created_at}"


def item_of(head: Head, etag: str) -> Item:
    """What is known of a live item."""
    assert head.entry
    _, author, *at = head.entry.type.split("; ")
    return Item(
        key=key_at(head.path),
        version=head.version,
        etag=etag,
        revision=head.revision,
        created_by=author.removeprefix("by="),
        created_at=int(at[0].removeprefix("at=")) if at else head.at,
        updated_at=head.at,
        blob=head.entry.blob,
    )


def preview(value: str) -> str:
    """How a value begins."""
    return value if len(value) <= PREVIEW else value[:PREVIEW] + "..."
