"""Response headers and error format of a foreign API convention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from carrel.server.http.error_responses import FAILURE_STATUS, Problem
from carrel.server.http.response import HeaderPairs, Response, encode

_decode_problem: Final = msgspec.json.Decoder(Problem).decode
_REPLACED_HEADERS: Final = frozenset({b"content-type", b"www-authenticate"})


def failure_code(problem: Problem) -> str | msgspec.UnsetType:
    """Code of an outage, of damage or of a bug; unset for a refusal."""
    return problem.error if problem.error in FAILURE_STATUS else msgspec.UNSET


@dataclass(frozen=True, slots=True)
class ErrorDialect:
    """Error format and headers of one foreign API convention."""

    headers: HeaderPairs
    """Added to every response of the path, refusals and OPTIONS included."""
    problem_model: Any
    """Model of error responses, for the API description."""
    format_error: Callable[[Problem], Any]
    """Converts a Problem to the error body."""
    plain_text: bool = False
    """Whether the error body is text rather than JSON."""
    request_id_header: bytes | None = None
    """Further header with the id of the request."""
    basic_auth: bool = False
    """Accept a token as Basic auth password, and challenge with Basic on 401."""

    @property
    def media_type(self) -> str:
        return "text/plain" if self.plain_text else "application/json"

    def apply(self, response: Response, request_id: str = "") -> Response:
        added = self.headers
        if self.request_id_header is not None and request_id:
            added = [*added, (self.request_id_header, request_id.encode("ascii"))]
        if response.status < 400:
            headers = [*response.headers, *added]
            return Response(response.status, response.body, headers, response.source)
        error_body = self.format_error(_decode_problem(response.body))
        body = error_body.encode() if self.plain_text else encode(error_body)
        headers = [*self._error_headers(response), *added]
        return Response(response.status, body, headers)

    def _error_headers(self, response: Response) -> HeaderPairs:
        headers = [pair for pair in response.headers if pair[0] not in _REPLACED_HEADERS]
        headers.append((b"content-type", self.media_type.encode("ascii")))
        challenge = response.header(b"www-authenticate")
        if challenge is not None:
            headers.append(
                (b"www-authenticate", b'Basic realm="carrel"' if self.basic_auth else challenge)
            )
        return headers
