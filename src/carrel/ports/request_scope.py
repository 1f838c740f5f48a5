"""Records revision that one request sees, for stores where asking is a round trip."""

from __future__ import annotations

from contextvars import ContextVar, Token
from time import monotonic
from typing import Final

MAX_AGE_SECONDS: Final = 1.0
"""A request that waits longer, such as for a command, asks for the revision again."""


class RequestScope:
    """Revision that the store last gave to one request.

    A commit or a started run ends its use, since the caller may check then whether its decision
    still holds. Tasks that outlive the request do not use it.
    """

    __slots__ = ("_loaded_at", "_revision", "commits", "is_open")

    def __init__(self) -> None:
        self._revision = 0
        self._loaded_at: float | None = None
        self.commits = 0
        self.is_open = True

    def get(self) -> int | None:
        """Return the revision; None if it must be asked."""
        if self._loaded_at is None or monotonic() - self._loaded_at > MAX_AGE_SECONDS:
            return None
        return self._revision

    def set(self, revision: int, commits: int) -> None:
        """Remember the revision of a read that began after this number of commits."""
        if commits == self.commits:
            self._revision, self._loaded_at = revision, monotonic()

    def end_revision(self) -> None:
        self.commits += 1
        self._loaded_at = None


_CURRENT: Final[ContextVar[RequestScope | None]] = ContextVar("request_scope", default=None)


def begin() -> Token[RequestScope | None]:
    """Begin the scope of a request; pass the result to `end`."""
    return _CURRENT.set(RequestScope())


def end(token: Token[RequestScope | None]) -> None:
    if (scope := _CURRENT.get()) is not None:
        scope.is_open = False
    _CURRENT.reset(token)


def current() -> RequestScope | None:
    """Return the scope of the running request; None outside requests and after their end."""
    scope = _CURRENT.get()
    return scope if scope is not None and scope.is_open else None
