"""Identifiers: paths, scopes, digests, slugs. Constructing one validates it."""

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
"""SHA-256 of content as `sha256:<64 hex>`."""

TimestampMs = int
"""Milliseconds since 1970-01-01 UTC."""

MAX_PATH_BYTES: Final = 1024
MAX_PREFIX_LENGTH: Final = MAX_PATH_BYTES + 1
"""Characters of a prefix of paths: a directory and the slash after it."""
MAX_SEGMENT_BYTES: Final = 255

_PLAIN_PATH: Final = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,8}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
)
_WIRE_PATH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")
_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEX: Final = re.compile("[0-9a-f]{64}")
_SHARED_WORKSPACE_PREFIX: Final = "ws_"


def digest(content: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(content).hexdigest())


def parse_digest(text: str) -> Digest:
    """Parse a SHA-256 in hex, with or without the `sha256:` prefix.

    Raises ValidationError.
    """
    hex_digits = text.removeprefix("sha256:")
    if not _HEX.fullmatch(hex_digits):
        raise ValidationError(f"{_abbreviate(text)} is not a SHA-256 in hex")
    return Digest(f"sha256:{hex_digits}")


class Path(Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """Relative path of a file: forward slashes, NFC, no `.` or `..` segments."""

    text: str

    def __post_init__(self) -> None:
        if _PLAIN_PATH.fullmatch(self.text):
            return
        text = unicodedata.normalize("NFC", self.text)
        if problem := _path_problem(text):
            raise ValidationError(f"{_abbreviate(self.text)} is not a workspace path: {problem}")
        force_setattr(self, "text", text)

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def parents(self) -> tuple[Path, ...]:
        """Parent directories, outermost first."""
        return _parents(self.text) if "/" in self.text else ()

    @property
    def fits_wire(self) -> bool:
        """Whether the path matches the narrower pattern of RFC 0059."""
        return _WIRE_PATH.fullmatch(self.text) is not None


@lru_cache(maxsize=4096)
def _parents(text: str) -> tuple[Path, ...]:
    return tuple(Path(text[:n]) for n, character in enumerate(text) if character == "/")


@lru_cache(maxsize=4096)
def parse_wire_path(text: str) -> Path:
    """Parse a path as RFC 0059's endpoints accept it. Raises ValidationError."""
    path = Path(text)
    if not path.fits_wire:
        raise ValidationError(
            f"{_abbreviate(text)} is not a workspace path: letters, digits, . _ / - only"
        )
    return path


def normalize_prefix(text: str) -> str:
    """Spell a prefix of paths as paths are spelled."""
    return unicodedata.normalize("NFC", text)


def _path_problem(text: str) -> str | None:
    try:
        size = len(text.encode())
        segments = [(part, len(part.encode())) for part in text.split("/")]
    except UnicodeEncodeError:
        return "not valid Unicode"
    if size > MAX_PATH_BYTES:
        return f"longer than {MAX_PATH_BYTES} bytes"
    if any(unicodedata.category(character) == "Cc" for character in text):
        return "contains a control character"
    if "\\" in text:
        return "contains a backslash"
    return next(filter(None, (_segment_problem(*segment) for segment in segments)), None)


def _segment_problem(part: str, size: int) -> str | None:
    if not part:
        return "contains an empty segment"
    if part in {".", ".."}:
        return f"contains a {part!r} segment"
    return (
        f"a segment is longer than {MAX_SEGMENT_BYTES} bytes" if size > MAX_SEGMENT_BYTES else None
    )


def _abbreviate(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "…")


class ScopeKind(StrEnum):
    """Kind of the owner of a tree."""

    AGENT = "agent"
    PINS = "pins"
    """Reviewed files shared by several agents: see core/overlay/pin_sets.py."""
    TEMPLATE = "template"
    DEFAULTS = "defaults"
    WORKSPACE = "workspace"
    ITEMS = "items"


class Scope(Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """Owner of one tree.

    The tenant always comes from the credential, never from the request.
    """

    tenant: str
    kind: ScopeKind
    name: str

    @property
    def is_shared_workspace(self) -> bool:
        """Whether it is a workspace that agents share, which exists by its record.

        Rows, ETags and events have one kind for all workspaces, so the id decides.
        """
        return self.kind is ScopeKind.WORKSPACE and self.name.startswith(_SHARED_WORKSPACE_PREFIX)

    @property
    def tag(self) -> str:
        """Short hash that distinguishes the layers of a stack in an ETag."""
        return _tag(self.kind, self.name)


@lru_cache(maxsize=8192)
def _tag(kind: ScopeKind, name: str) -> str:
    return hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()[:8]


Stack = tuple[Scope, ...]
"""Scopes of a workspace, nearest first; the nearest that has a path decides it."""


def parse_slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValidationError(
            f"{_abbreviate(text)} is not a slug: 1 to 63 of a-z, 0-9 and inner hyphens"
        )
    return text


def parse_identifier(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValidationError(
            f"{_abbreviate(text)} is not an id: 1 to 128 letters, digits, . - and _"
        )
    return text
