"""HTTP requests and responses as values, independent of the HTTP library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from carrel_client.errors import CarrelError, InvalidResponse, error_class

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
Query = Mapping[str, str | Sequence[str]]
"""Parameters by name; one with several values is repeated."""
_EMPTY: Final[Mapping[str, str]] = {}


class BodySource(Protocol):
    """Bytes that a request sends, read again for every attempt."""

    def parts(self) -> Iterator[bytes]:
        """Read the bytes from the start. Blocks."""


class BodySink(Protocol):
    """Receives the body of a successful response in parts. Blocks."""

    def begin(self, response: HttpResponse) -> None:
        """Called with the response before its body."""

    def write(self, part: bytes) -> None: ...


class HttpRequest:
    """API request; ``body`` is encoded as JSON, or else ``source`` is sent."""

    __slots__ = (
        "body",
        "extra_seconds",
        "headers",
        "key_is_generated",
        "method",
        "path",
        "query",
        "sink",
        "source",
        "started_at",
        "work_seconds",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: Query = _EMPTY,
        headers: Mapping[str, str] = _EMPTY,
        body: Any = None,
        source: BodySource | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.source = source
        self.sink: BodySink | None = None
        self.started_at: float | None = None
        """When its first attempt began, by ``time.monotonic``; later, to extend its deadline."""
        self.extra_seconds = 0.0
        """Seconds that its body may take beyond the deadline."""
        self.work_seconds = 0.0
        """Seconds that the server may work before it responds, beyond the timeout and deadline."""
        self.key_is_generated = False
        """Whether the client generated the key; a driver without retries drops it."""

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.path}>"


class HttpResponse:
    """A complete response. Header names are in lower case."""

    __slots__ = ("content", "headers", "may_retry", "reason", "status")

    def __init__(
        self,
        status: int,
        content: bytes = b"",
        headers: Mapping[str, str] = _EMPTY,
        reason: str = "",
    ) -> None:
        self.status = status
        self.content = content
        self.headers = headers
        self.reason = reason
        self.may_retry = True
        """Whether a retry cannot execute the request twice."""

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status}>"

    @property
    def is_success(self) -> bool:
        return self.status // 100 == 2

    def json(self) -> Any:
        """Raises InvalidResponse."""
        try:
            return self.decode()
        except (ValueError, RecursionError):
            raise InvalidResponse("the response is not JSON", status=self.status) from None

    def decode(self) -> Any:
        """Raises ValueError or RecursionError."""
        return json.loads(self.content)

    def text(self) -> str:
        """Raises InvalidResponse."""
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            raise InvalidResponse("the response is not UTF-8", status=self.status) from None


def error_from_response(response: HttpResponse) -> CarrelError:
    """Return the error that a response describes. A proxy's response has no envelope."""
    status = response.status
    try:
        envelope = response.decode()
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, Mapping) or not isinstance(envelope.get("error"), str):
        envelope = {"error": f"http_{status}", "message": f"{status} {response.reason}".strip()}
    details = envelope.get("details")
    return error_class(status, envelope["error"])(
        str(envelope.get("message") or envelope["error"]),
        status=status,
        code=envelope["error"],
        details=details if isinstance(details, Mapping) else None,
    )
