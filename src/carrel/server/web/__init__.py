"""The admin console: a web page that uses only the public API.

It is built from ``ui/`` into ``static/``, which is part of the wheel.
"""

from __future__ import annotations

import gzip
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
_COMPRESSED_KINDS: Final = frozenset({"css", "js", "svg"})
PAGE: Final = "index.html"
PREFIXES: Final = (
    "/sign-in",
    "/inbox",
    "/agents",
    "/agent-templates",
    "/runs",
    "/approvals",
    "/workspaces",
    "/sandboxes",
    "/items",
    "/settings",
    "/search",
)
"""Paths of the console's screens; all of them serve the same page."""
_NONCE: Final = b"__NONCE__"
_NOT_BUILT: Final = (
    b"<!doctype html><title>Carrel</title><p>The console is not built: run <code>make ui</code>. "
    b'See also the <a href="/docs">API docs</a>.'
)

HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FOR_EVER: Final = "public, max-age=31536000, immutable"
"""For assets whose name contains a hash of their content."""


def policy(nonce: str) -> str:
    """Content-Security-Policy: own files and own server only, no string as markup."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
        "font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@dataclass(frozen=True)
class Asset:
    body: bytes
    kind: str

    @property
    def type(self) -> str:
        return _TYPES[self.kind]

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    @cached_property
    def gzipped(self) -> bytes | None:
        """The body as gzip; None for kinds that are compressed already."""
        return gzip.compress(self.body, 9, mtime=0) if self.kind in _COMPRESSED_KINDS else None


@dataclass(frozen=True)
class ConsolePage:
    """The HTML page; every response contains a new nonce."""

    body: bytes

    def render(self) -> tuple[bytes, dict[str, str]]:
        nonce = secrets.token_urlsafe(16)
        headers = {
            **HEADERS,
            "Content-Security-Policy": policy(nonce),
            "Cache-Control": "no-store",
        }
        return self.body.replace(_NONCE, nonce.encode("ascii")), headers


def page() -> ConsolePage:
    file = resources.files(__package__).joinpath("static", PAGE)
    return ConsolePage(file.read_bytes() if file.is_file() else _NOT_BUILT)


def assets() -> Mapping[str, Asset]:
    """Assets of the console by URL path; empty if it is not built."""
    static = resources.files(__package__).joinpath("static")
    return dict(_list_assets(static, "/")) if static.is_dir() else {}


def _list_assets(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    listed: list[tuple[str, Asset]] = []
    for file in folder.iterdir():
        kind = file.name.rpartition(".")[2]
        if file.is_dir():
            listed += _list_assets(file, f"{prefix}{file.name}/")
        elif kind in _TYPES and file.name != PAGE:
            listed.append((prefix + file.name, Asset(file.read_bytes(), kind)))
    return listed
