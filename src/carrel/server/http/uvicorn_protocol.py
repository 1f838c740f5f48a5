"""uvicorn HTTP protocol with a header size limit and Carrel's error responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from carrel.core.errors import ValidationError
from carrel.server.http.problems import HEADERS_TOO_LARGE, problem_response, refusal_response
from carrel.server.http.response import Response

MAX_HEAD_BYTES: Final = 2**18
"""Maximum consecutive bytes that are not body.

Counts request line, headers, chunk framing and trailers. Above the size of one socket read.
"""


class Connection(HttpToolsProtocol):
    """HTTP connection that limits header size and formats 400 and 431 responses."""

    _head_bytes = 0
    """Bytes received since the last body data or the end of a request."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._is_receiving():
            self._head_bytes = 0
        elif self._head_bytes + len(data) <= MAX_HEAD_BYTES:
            self._head_bytes += len(data)
        else:
            details = {"maxBytes": MAX_HEAD_BYTES}
            self._refuse(
                problem_response(HEADERS_TOO_LARGE, "request headers are too large", details)
            )

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Respond to malformed HTTP."""
        self._refuse(refusal_response(ValidationError(msg)))

    def _is_receiving(self) -> bool:
        scope = self.scope
        return scope is not None and ("method" not in scope or self.cycle.more_body)

    def _refuse(self, response: Response) -> None:
        status = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}".encode()
        length = (b"content-length", b"%d" % len(response.body))
        headers = [*response.headers, length, (b"connection", b"close")]
        lines = [status, *(b"%b: %b" % pair for pair in headers)]
        self.transport.write(b"\r\n".join([*lines, b"", response.body]))
        self.transport.close()
