"""A client's connection: uvicorn's, with a bound on what is no body, and with our own refusals."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from carrel.core.errors import ValidationError
from carrel.server.http.problems import HEAD_TOO_LARGE, problem, refusal_response
from carrel.server.http.response import Response

LARGEST_HEAD: Final = 2**18
"""Bytes of a request that may come one after the other and be no body: its line and headers, what
stands around the pieces of a body, and what follows it. More than is read at a time."""


class Connection(HttpToolsProtocol):
    _unfinished = 0
    """Bytes that have come since there was a body, or a request had all come."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._is_under_way():
            self._unfinished = 0
        elif self._unfinished + len(data) <= LARGEST_HEAD:
            self._unfinished += len(data)
        else:
            most = {"maxBytes": LARGEST_HEAD}
            self._refuse(problem(HEAD_TOO_LARGE, "the headers are too large", most))

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        self._refuse(refusal_response(ValidationError(msg)))

    def _is_under_way(self) -> bool:
        scope = self.scope
        return scope is not None and ("method" not in scope or self.cycle.more_body)

    def _refuse(self, answer: Response) -> None:
        status = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}".encode()
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [*answer.headers, length, (b"connection", b"close")]
        lines = [status, *(b"%b: %b" % pair for pair in headers)]
        self.transport.write(b"\r\n".join([*lines, b"", answer.body]))
        self.transport.close()
