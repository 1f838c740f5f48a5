"""The face for people at a browser: a page that talks to the public API and to nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

PAGE: Final = "index.html"

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Nothing runs but our own files, nobody but this server is asked, no string becomes markup."""


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    type: str
    etag: str


def assets() -> Mapping[str, Asset]:
    """Every file of the page, by its name."""
    found = (file for file in resources.files(__package__).joinpath("static").iterdir())
    return {file.name: _asset(file.name, file.read_bytes()) for file in found}


def _asset(name: str, body: bytes) -> Asset:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Asset(body, _TYPES[name.rpartition(".")[2]], etag)
