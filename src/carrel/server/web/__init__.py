"""Admin console: a single-page app that uses the public API only.

Built from `ui/` into `static/` and included in the wheel.
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
    "/overview",
    "/agents",
    "/agent-templates",
    "/runs",
    "/approvals",
    "/workspaces",
    "/sandboxes",
    "/items",
    "/settings",
    "/search",
    "/compare",
)
"""Paths of the console's screens; all serve the same page."""
_NONCE: Final = b"__NONCE__"
_NOT_BUILT: Final = (
    b"<!doctype html><title>Carrel</title><p>The console is not built; run <code>make ui</code>. "
    b'See the <a href="/docs">API documentation</a>.'
)

HEADERS: Final[Mapping[str, str]] = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
IMMUTABLE_CACHE: Final = "public, max-age=31536000, immutable"
"""For assets whose name contains a content hash."""


def content_security_policy(nonce: str) -> str:
    """Allow only own files, own API and nonced styles; require trusted types."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
        "font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@dataclass(frozen=True)
class Asset:
    """A static file of the console."""

    body: bytes
    kind: str

    @property
    def type(self) -> str:
        return _TYPES[self.kind]

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    @cached_property
    def gzip_body(self) -> bytes | None:
        """Content compressed with gzip; None for kinds that do not compress."""
        return gzip.compress(self.body, 9, mtime=0) if self.kind in _COMPRESSED_KINDS else None


@dataclass(frozen=True)
class ConsolePage:
    """The console's HTML page, served with a nonce per response."""

    body: bytes

    def render(self) -> tuple[bytes, dict[str, str]]:
        nonce = secrets.token_urlsafe(16)
        headers = {
            **HEADERS,
            "Content-Security-Policy": content_security_policy(nonce),
            "Cache-Control": "no-store",
        }
        return self.body.replace(_NONCE, nonce.encode("ascii")), headers


def load_page() -> ConsolePage:
    file = resources.files(__package__).joinpath("static", PAGE)
    return ConsolePage(file.read_bytes() if file.is_file() else _NOT_BUILT)


def load_assets() -> Mapping[str, Asset]:
    """Static files by request path; empty if the console is not built."""
    static = resources.files(__package__).joinpath("static")
    return dict(_assets_in(static, "/")) if static.is_dir() else {}


def _assets_in(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    result: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        kind = entry.name.rpartition(".")[2]
        if entry.is_dir():
            result += _assets_in(entry, f"{prefix}{entry.name}/")
        elif kind in _TYPES and entry.name != PAGE:
            result.append((prefix + entry.name, Asset(entry.read_bytes(), kind)))
    return result
