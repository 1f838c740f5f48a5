"""uvicorn HTTP protocol with limits for headers and Carrel's error responses."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from carrel.core.errors import ValidationError
from carrel.server.http.error_responses import (
    HEADERS_TOO_LARGE,
    REQUEST_TIMEOUT,
    problem_response,
    refusal_response,
)
from carrel.server.http.response import Response

MAX_HEAD_BYTES: Final = 2**18
"""Maximum consecutive bytes that are not body.

Counts request line, headers, chunk framing and trailers. Above the size of one socket read.
"""
HEAD_TIMEOUT_SECONDS: Final = 20.0
"""Seconds for the headers of a request, and for the rest of a request that has its response."""


class Connection(HttpToolsProtocol):
    """HTTP connection that limits size and time of headers and formats 400, 408 and 431.

    The time for bodies is limited where they are read.
    """

    _head_bytes = 0
    """Bytes received since the last body data or the end of a request."""
    _head_timer: asyncio.TimerHandle | None = None
    """Runs while the client has to complete the headers of a request, or one with a response."""

    _is_in_request = False
    """Whether a request has begun that is not received completely."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._end_slow_request)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_head_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._is_slow_request():
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._end_slow_request)
        if not self._is_receiving():
            self._head_bytes = 0
        elif self._head_bytes + len(data) <= MAX_HEAD_BYTES:
            self._head_bytes += len(data)
        else:
            details = {"maxBytes": MAX_HEAD_BYTES}
            self._refuse(
                problem_response(HEADERS_TOO_LARGE, "request headers are too large", details)
            )

    def on_message_begin(self) -> None:
        self._is_in_request = True
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_request = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to malformed HTTP."""
        self._refuse(refusal_response(ValidationError(msg)))

    def _is_receiving(self) -> bool:
        scope = self.scope
        if scope is None:
            return False
        return "method" not in scope or (self.cycle is not None and self.cycle.more_body)

    def _is_slow_request(self) -> bool:
        """Return whether a request is incomplete that no reader of its body limits."""
        scope = self.scope
        if scope is None or "method" not in scope:
            return True
        cycle = self.cycle
        if cycle is None:  # An upgrade to WebSocket: another protocol takes over.
            return False
        return cycle.response_complete and self._is_in_request

    def _end_slow_request(self) -> None:
        self._head_timer = None
        cycle = self.cycle
        if self.transport.is_closing():
            return
        if cycle is not None and not cycle.response_complete:  # An earlier response comes first.
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._end_slow_request)
        elif "method" in (self.scope or ()):
            self.transport.close()
        else:
            self._refuse(problem_response(REQUEST_TIMEOUT, "timed out reading the request headers"))

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, response: Response) -> None:
        self.transport.write(response.to_last_bytes())
        self.transport.close()
