"""State of one request: its records revision, and whether its caller is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar, Token
from time import monotonic
from typing import Any, Final, TypeVar

Receive = Callable[[], Awaitable[Any]]
"""Returns the next ASGI message."""

Result = TypeVar("Result")

MAX_AGE_SECONDS: Final = 1.0
"""After this time, for example after a command, the revision is loaded again."""


class CallerDisconnected(Exception):
    """The caller of the request is gone, and its work was stopped."""


class RequestScope:
    """Records revision that one request loaded last, and its ASGI messages.

    A commit or a started run discards it, since the caller may then check its decision again.
    Tasks that outlive the request do not use it.
    """

    __slots__ = ("_loaded_at", "_revision", "audited_reads", "commits", "is_open", "receive")

    def __init__(self, receive: Receive | None = None) -> None:
        self.receive = receive
        self._revision = 0
        self._loaded_at: float | None = None
        self.commits = 0
        self.is_open = True
        self.audited_reads: frozenset[tuple[str, str]] = frozenset()
        """Reason and agent of the reads that the audit names already."""

    def get(self) -> int | None:
        """Return the revision; None if it must be loaded."""
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


def begin(receive: Receive | None = None) -> Token[RequestScope | None]:
    """Begin the scope of a request; pass the result to `end`."""
    return _CURRENT.set(RequestScope(receive))


def end(token: Token[RequestScope | None]) -> None:
    if (scope := _CURRENT.get()) is not None:
        scope.is_open = False
    _CURRENT.reset(token)


def current() -> RequestScope | None:
    """Return the scope of the current request; None outside of requests."""
    scope = _CURRENT.get()
    return scope if scope is not None and scope.is_open else None


async def run_while_connected(work: Coroutine[Any, Any, Result]) -> Result:
    """Await work; cancel it if the caller of the current request disconnects.

    Returns or raises once the work has ended. Raises CallerDisconnected if it was cancelled.
    """
    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(wait_for_disconnect())
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        if task.cancelled():
            raise CallerDisconnected
        return task.result()
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


async def wait_for_disconnect() -> None:
    """Return when the caller of the current request disconnects; its body must have been read.

    Never returns outside of requests and for callers in the same process.
    """
    scope = current()
    if scope is None or scope.receive is None:
        await asyncio.Event().wait()
        return
    while (await scope.receive())["type"] != "http.disconnect":
        pass
