"""Limits on the time and the size of responses, whatever the server sends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakSet

from carrel_client.errors import (
    DeadlineExceeded,
    InvalidResponse,
    ResponseTooLarge,
    ValidationError,
)
from carrel_client.http_messages import HttpResponse
from carrel_client.httpx_import import httpx

_ENCODINGS: Final = frozenset({"", "identity", "gzip"})
"""Encodings that expand a byte to at most about 1,000."""
_CONNECTED: Final = frozenset(
    {
        "connection.connect_tcp.complete",
        "connection.connect_unix_socket.complete",
        "connection.start_tls.complete",
    }
)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    timeout_seconds: float
    """Seconds to connect, and between two chunks."""
    deadline_seconds: float
    """Seconds for a complete response, with all retries and pauses."""
    max_bytes: int
    """Maximum size of a decompressed response in bytes."""

    def __post_init__(self) -> None:
        seconds = {"timeout": self.timeout_seconds, "deadline": self.deadline_seconds}
        for name, value in seconds.items():
            if not 0 < value <= threading.TIMEOUT_MAX:
                raise ValidationError(f"{name} must be a number of seconds above 0")
        if not 1 <= self.max_bytes < 2**63:
            raise ValidationError("max_response_bytes must be a number of bytes above 0")

    def remaining(self, started_at: float | None) -> float:
        """Seconds until the deadline of a request. Raises DeadlineExceeded."""
        if started_at is None:
            return self.deadline_seconds
        remaining = started_at + self.deadline_seconds - time.monotonic()
        if remaining <= 0:
            raise self.deadline_exceeded()
        return remaining

    def check_pause(self, seconds: float, started_at: float | None) -> None:
        """Raises DeadlineExceeded if the deadline ends before the pause does."""
        if started_at is not None and seconds >= self.remaining(started_at):
            raise self.deadline_exceeded()

    def deadline_exceeded(self) -> DeadlineExceeded:
        seconds = self.deadline_seconds
        return DeadlineExceeded(f"the server did not respond completely within {seconds:g} s")

    def httpx_timeout(self, remaining: float, work_seconds: float = 0.0) -> httpx.Timeout:
        """Return the timeouts of network operations; those of reads include the server's work."""
        seconds = min(self.timeout_seconds, remaining)
        return httpx.Timeout(seconds, read=min(self.timeout_seconds + work_seconds, remaining))

    def buffer_for(self, response: httpx.Response) -> ResponseBuffer:
        """Raises ResponseTooLarge for a declared size, InvalidResponse for an encoding."""
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise InvalidResponse("the response has an encoding that was not requested")
        declared = response.headers.get("Content-Length", "")
        buffer = ResponseBuffer(response, self.max_bytes)
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self.max_bytes:
            raise buffer.too_large()
        return buffer


@dataclass(frozen=True, slots=True)
class ResponseBuffer:
    """Buffer for a response of limited size."""

    response: httpx.Response
    max_bytes: int
    content: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Raises ResponseTooLarge."""
        if len(self.content) + len(chunk) > self.max_bytes:
            raise self.too_large()
        self.content.extend(chunk)

    def too_large(self) -> ResponseTooLarge:
        status = self.response.status_code
        return ResponseTooLarge(f"the response exceeds {self.max_bytes} bytes", status=status)

    def complete(self) -> HttpResponse:
        return http_response(self.response, bytes(self.content))


def http_response(response: httpx.Response, content: bytes) -> HttpResponse:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpResponse(response.status_code, content, headers, response.reason_phrase)


class OpenConnections:
    """Connections of a blocking client, to be shut down at a deadline."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Callback of httpx for every event of a connection."""
        if event in _CONNECTED:
            with self._lock:
                self._open.add(info["return_value"])

    @contextlib.contextmanager
    def closed_after(self, seconds: float) -> Iterator[None]:
        """Shut down all connections unless the block ends in time."""
        timer = threading.Timer(seconds, self._shut_down)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _shut_down(self) -> None:
        """Shut down all connections, since httpx does not relate them to requests.

        Other requests are retried.
        """
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket, which changes what its reader is using.
                socket.socket.shutdown(connection.get_extra_info("socket"), socket.SHUT_RDWR)
