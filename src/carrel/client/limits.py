"""How long an answer may take and how large it may be, whatever the server would like."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakSet

from carrel.client.errors import DeadlineExceeded, InvalidResponse, Malformed, ResponseTooLarge
from carrel.client.httpx_import import httpx

_ENCODINGS: Final = frozenset({"", "identity", "gzip"})
"""Those that cannot make much more than a thousand bytes out of one that has come."""
_SPENT: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_CONNECTED: Final = frozenset(
    {
        "connection.connect_tcp.complete",
        "connection.connect_unix_socket.complete",
        "connection.start_tls.complete",
    }
)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What a client puts up with."""

    timeout: float
    """Seconds to wait for a connection, or for the next bytes."""
    deadline: float
    """Seconds for an answer as a whole, all tries and the pauses between them included."""
    most: int
    """Bytes of an answer, once they are unpacked."""

    def __post_init__(self) -> None:
        for name, value in (("timeout", self.timeout), ("deadline", self.deadline)):
            if not 0 < value <= threading.TIMEOUT_MAX:
                raise Malformed(f"{name} must be a number of seconds above 0")
        if not 1 <= self.most < 2**63:
            raise Malformed("max_answer_bytes must be a number of bytes above 0")

    def left(self, began: float | None) -> float:
        """Seconds until the deadline of what began then. Raises Overdue."""
        left = self.deadline if began is None else began + self.deadline - time.monotonic()
        if left <= 0:
            raise self.overdue()
        return left

    def allow(self, seconds: float, began: float | None) -> None:
        """Raises Overdue if the deadline would be over after such a wait."""
        if began is not None and seconds >= self.left(began):
            raise self.overdue()

    def overdue(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"the server has not answered in full within {self.deadline:g} s")

    def within(self, left: float) -> dict[str, Any]:
        """As arguments of httpx: no single wait is longer than all that is left."""
        return {"timeout": min(self.timeout, left)}

    def taking(self, coming: httpx.Response) -> ResponseBuffer:
        """Raises Oversized where the server says so itself, Garbled for an unknown encoding."""
        encoding = coming.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise InvalidResponse("the answer is packed in a way that was not asked for")
        said = coming.headers.get("Content-Length", "")
        taking = ResponseBuffer(coming, self.most)
        if said.isascii() and said.isdigit() and int(said[:20]) > self.most:
            raise taking.oversized()
        return taking


@dataclass(frozen=True, slots=True)
class ResponseBuffer:
    """An answer of which some has come."""

    coming: httpx.Response
    most: int
    taken: bytearray = field(default_factory=bytearray)

    def add(self, piece: bytes) -> None:
        """Raises Oversized."""
        if len(self.taken) + len(piece) > self.most:
            raise self.oversized()
        self.taken.extend(piece)

    def oversized(self) -> ResponseTooLarge:
        status = self.coming.status_code
        return ResponseTooLarge(f"the answer is larger than {self.most} bytes", status=status)

    def whole(self) -> httpx.Response:
        kept = [pair for pair in self.coming.headers.multi_items() if pair[0] not in _SPENT]
        phrase = {"reason_phrase": self.coming.reason_phrase.encode("ascii", "ignore")}
        content = bytes(self.taken)
        return httpx.Response(
            self.coming.status_code, headers=kept, content=content, extensions=phrase
        )


class OpenConnections:
    """The connections of a blocking client, so that a read that never ends can be ended."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    def traced(self) -> dict[str, Any]:
        """As arguments of httpx: it tells of every connection that it makes."""
        return {"extensions": {"trace": self._note}}

    def _note(self, event: str, facts: dict[str, Any]) -> None:
        if event in _CONNECTED:
            with self._lock:
                self._open.add(facts["return_value"])

    @contextlib.contextmanager
    def cut_after(self, seconds: float) -> Iterator[None]:
        """Cut the lines unless what follows ends in time."""
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        """All of them, as nobody knows which is whose: other threads' requests are sent again."""
        with self._lock:
            lines = list(self._open)
        for line in lines:
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket, which changes what its reader is using.
                socket.socket.shutdown(line.get_extra_info("socket"), socket.SHUT_RDWR)
