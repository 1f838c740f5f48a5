"""Digest fields of RFC 9530: written, and checked where a request has them."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from typing import Final

from carrel.core.errors import ValidationError
from carrel.server.http.endpoint import Headers, RequestHeader

REPR_DIGEST: Final = RequestHeader(
    "Repr-Digest", "`sha-256=:…:`; refused if the content has another digest."
)
_FIELDS: Final = {b"repr-digest": "Repr-Digest", b"content-digest": "Content-Digest"}
_MEMBER: Final = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*(?:;.*)?", re.DOTALL)
_SHA256: Final = "sha-256"


def format_digest(sha256: bytes) -> bytes:
    """Value of a digest field."""
    return b"%b=:%b:" % (_SHA256.encode(), b64encode(sha256))


def require_digests(headers: Headers, sha256: bytes) -> None:
    """Raise ValidationError if a digest field names another SHA-256.

    Other algorithms are ignored.
    """
    for header, name in _FIELDS.items():
        if (value := headers.get(header)) is not None:
            expected = _parse_sha256(name, value.decode("latin-1"))
            if expected is not None and expected != sha256:
                raise ValidationError(f"the content does not match its {name}")


def require_digests_of(headers: Headers, content: bytes) -> None:
    """As `require_digests`, for a content that is held whole."""
    if any(header in headers for header in _FIELDS):
        require_digests(headers, hashlib.sha256(content).digest())


def _parse_sha256(name: str, value: str) -> bytes | None:
    """SHA-256 of a dictionary of digests, None if it has none. Raises ValidationError."""
    sha256 = None
    for text in value.split(","):
        member = _MEMBER.fullmatch(text)
        if member is None:
            raise ValidationError(f"{name} must be a list such as sha-256=:base64:")
        if member[1] == _SHA256:
            try:
                sha256 = b64decode(member[2], validate=True)
            except ValueError:
                raise ValidationError(f"{name} is not base64") from None
    return sha256
