"""The face for people at a browser: a page that talks to the public API and to nothing else.

The page is made from ``ui/`` and lies in ``static/``; an installed wheel brings it along.
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
_SQUEEZED: Final = frozenset({"css", "js", "svg"})
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
"""Where the page has screens: all of them are the same page, which looks at its address."""
_NONCE: Final = b"__NONCE__"
_UNMADE: Final = (
    b"<!doctype html><title>Carrel</title><p>The page has not been made yet: <code>make ui</code> "
    b'makes it. The API is here: see <a href="/docs">its description</a>.'
)

HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FOR_EVER: Final = "public, max-age=31536000, immutable"
"""Of parts whose name changes with what they hold."""


def policy(nonce: str) -> str:
    """Nothing runs but our own files, nobody but this server is asked, no string becomes markup."""
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
    def squeezed(self) -> bytes | None:
        """As gzip, where that is worth its while."""
        return gzip.compress(self.body, 9, mtime=0) if self.kind in _SQUEEZED else None


@dataclass(frozen=True)
class Page:
    """The page itself, which carries the nonce of its own answer."""

    body: bytes

    def fresh(self) -> tuple[bytes, dict[str, str]]:
        nonce = secrets.token_urlsafe(16)
        headers = {
            **HEADERS,
            "Content-Security-Policy": policy(nonce),
            "Cache-Control": "no-store",
        }
        return self.body.replace(_NONCE, nonce.encode("ascii")), headers


def page() -> Page:
    found = resources.files(__package__).joinpath("static", PAGE)
    return Page(found.read_bytes() if found.is_file() else _UNMADE)


def assets() -> Mapping[str, Asset]:
    """Every part of the page by the path it is asked for with; none where it was never made."""
    static = resources.files(__package__).joinpath("static")
    return dict(_under(static, "/")) if static.is_dir() else {}


def _under(folder: Traversable, at: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for each in folder.iterdir():
        kind = each.name.rpartition(".")[2]
        if each.is_dir():
            found += _under(each, f"{at}{each.name}/")
        elif kind in _TYPES and each.name != PAGE:
            found.append((at + each.name, Asset(each.read_bytes(), kind)))
    return found
