"""Event loop of a server process: uvloop with a listener that survives a lack of descriptors.

uvloop's own listener retries a failed accept without pause or message, at full load of a core.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import uvloop

from carrel.ports.logging import structlog
from carrel.server.http.error_responses import UNAVAILABLE, problem_response

PAUSE_SECONDS: Final = 1.0
"""Time between attempts to accept while descriptors or memory are exhausted."""
LOG_SECONDS: Final = 10.0
"""Least time between two messages about a shortage."""
_MAX_RESERVED_DESCRIPTORS: Final = 256
_ACCEPTS_PER_TURN: Final = 64
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_LACKS_DESCRIPTORS: Final = "too few file descriptors for more connections"


class ServerLoop(uvloop.Loop):
    """Event loop whose servers on a given socket are Listeners."""

    async def create_server(
        self, protocol_factory: Any, *arguments: Any, sock: Any = None, **options: Any
    ) -> Any:
        if sock is None:
            return await super().create_server(protocol_factory, *arguments, **options)
        return Listener(self, sock, protocol_factory)


class Listener:
    """Accepts connections; pauses and logs while there are no descriptors for them.

    Connections leave descriptors free for files and databases. One above that gets 503.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening_socket: socket.socket,
        create_protocol: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._loop = loop
        self._socket = listening_socket
        self._create_protocol = create_protocol
        self._opening: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next_log = 0.0
        listening_socket.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Stop accepting; the socket is closed by its owner."""
        if self._timer is None:
            self._loop.remove_reader(self._socket)
        else:
            self._timer.cancel()

    async def wait_closed(self) -> None:
        """Wait until the accepted connections are open."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._socket, self._accept)

    def _pause(self) -> None:
        self._loop.remove_reader(self._socket)
        self._timer = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _log_shortage(self, reason: str | None) -> None:
        now = self._loop.time()
        if now >= self._next_log:
            self._next_log = now + LOG_SECONDS
            structlog.get_logger("carrel.server").error(_LACKS_DESCRIPTORS, said=reason)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._log_shortage(error.strerror)
                return self._pause()
            if connection.fileno() < max_connection_descriptor():
                self._open(connection)
            else:
                self._log_shortage("connections use all but the reserved ones")
                _refuse(connection)

    def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        opening = self._loop.connect_accepted_socket(self._create_protocol, connection)
        task = self._loop.create_task(opening)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)


def max_connection_descriptor() -> int:
    """First descriptor that is reserved for other purposes than connections."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit - min(_MAX_RESERVED_DESCRIPTORS, limit // 4)


def _refuse(connection: socket.socket) -> None:
    retry_after = [(b"retry-after", b"1")]
    response = problem_response(UNAVAILABLE, _LACKS_DESCRIPTORS, headers=retry_after)
    with connection, suppress(OSError):  # The client disconnected or does not read.
        connection.setblocking(False)
        connection.send(response.to_last_bytes())
