"""The nouns. Each is made by parsing, so holding one is proof that it is well formed."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import Final, NewType

from msgspec import Struct
from msgspec.structs import force_setattr

from carrel.core.errors import ValidationError

Digest = NewType("Digest", str)
"""Names content by its SHA-256, as ``sha256:<64 hex>``. Equal digests mean equal bytes."""

TimestampMs = int
"""Milliseconds since 1970 in UTC."""

LONGEST_PATH: Final = 1024
LONGEST_SEGMENT: Final = 255

_PLAIN: Final = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,8}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
)
_WIRE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")
_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEX: Final = re.compile("[0-9a-f]{64}")


def digest(content: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(content).hexdigest())


def digest_named(text: str) -> Digest:
    """A digest as people pass it on: 64 hex digits, with or without what they are. Or Malformed."""
    plain = text.removeprefix("sha256:")
    if not _HEX.fullmatch(plain):
        raise ValidationError(f"{_shown(text)} is not a SHA-256 in hex")
    return Digest(f"sha256:{plain}")


class Path(Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """Where a file lives in a workspace: relative, forward-slashed, in NFC, with no way out."""

    text: str

    def __post_init__(self) -> None:
        if _PLAIN.fullmatch(self.text):
            return
        text = unicodedata.normalize("NFC", self.text)
        if problem := _problem(text):
            raise ValidationError(f"{_shown(self.text)} is not a workspace path: {problem}")
        force_setattr(self, "text", text)

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def parents(self) -> tuple[Path, ...]:
        """The directories that it is in, from the root on."""
        return _parents(self.text) if "/" in self.text else ()

    @property
    def fits_wire(self) -> bool:
        """Whether RFC 0059's narrower pattern admits it."""
        return _WIRE.fullmatch(self.text) is not None


@lru_cache(maxsize=4096)
def _parents(text: str) -> tuple[Path, ...]:
    return tuple(Path(text[:n]) for n, character in enumerate(text) if character == "/")


@lru_cache(maxsize=4096)
def wire_path(text: str) -> Path:
    """A path as RFC 0059's endpoints accept it."""
    path = Path(text)
    if not path.fits_wire:
        raise ValidationError(
            f"{_shown(text)} is not a workspace path: letters, digits, . _ / - only"
        )
    return path


def _problem(text: str) -> str | None:
    try:
        size = len(text.encode())
        segments = [(part, len(part.encode())) for part in text.split("/")]
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > LONGEST_PATH:
        return f"it is longer than {LONGEST_PATH} bytes"
    if any(unicodedata.category(character) == "Cc" for character in text):
        return "it holds a control character"
    if "\\" in text:
        return "it holds a backslash"
    return next(filter(None, (_segment_problem(*segment) for segment in segments)), None)


def _segment_problem(part: str, size: int) -> str | None:
    if not part:
        return "it has an empty segment"
    if part in {".", ".."}:
        return f"it has a {part!r} segment"
    return f"a segment is longer than {LONGEST_SEGMENT} bytes" if size > LONGEST_SEGMENT else None


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "…")


class ScopeKind(StrEnum):
    """What a scope belongs to."""

    AGENT = "agent"
    PINS = "pins"
    """What many agents were given as reviewed when they were made: see core/pinset.py."""
    TEMPLATE = "template"
    DEFAULTS = "defaults"
    WORKSPACE = "workspace"
    ITEMS = "items"


class Scope(Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """The owner of one tree. The tenant comes from the credential, never from the request."""

    tenant: str
    kind: ScopeKind
    name: str

    @property
    def tag(self) -> str:
        """A short name that tells the layers of one stack apart in an etag."""
        return _tag(self.kind, self.name)


@lru_cache(maxsize=8192)
def _tag(kind: ScopeKind, name: str) -> str:
    return hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()[:8]


Stack = tuple[Scope, ...]
"""A workspace as its scopes, from nearest to farthest: the nearest to speak of a path decides."""


def slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValidationError(
            f"{_shown(text)} is not a slug: 1 to 63 of a-z, 0-9 and inner hyphens"
        )
    return text


def identifier(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValidationError(f"{_shown(text)} is not an id: 1 to 128 letters, digits, . - and _")
    return text
