"""How an endpoint answers that keeps somebody else's convention: its headers, its way to say no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from carrel.server.http.problems import Problem
from carrel.server.http.response import Pairs, Response, encode

_problem: Final = msgspec.json.Decoder(Problem).decode
_REPLACED: Final = frozenset({b"content-type", b"www-authenticate"})


@dataclass(frozen=True, slots=True)
class ErrorDialect:
    headers: Pairs
    """On every answer at that address, refusals and OPTIONS included."""
    problem: Any
    """What refusals are, for the documentation."""
    format_error: Callable[[Problem], Any]
    """A refusal or failure in other words."""
    plain: bool = False
    """Whether those words are text, and not JSON."""
    basic: bool = False
    """Takes a token as the password of Basic authentication too, and asks for it in that way."""

    @property
    def media(self) -> str:
        return "text/plain" if self.plain else "application/json"

    def apply(self, answer: Response) -> Response:
        if answer.status < 400:
            headers = [*answer.headers, *self.headers]
            return Response(answer.status, answer.body, headers, answer.source)
        told = self.format_error(_problem(answer.body))
        body = told.encode() if self.plain else encode(told)
        headers = [*self._said(answer), *self.headers]
        return Response(answer.status, body, headers)

    def _said(self, answer: Response) -> Pairs:
        said = [pair for pair in answer.headers if pair[0] not in _REPLACED]
        said.append((b"content-type", self.media.encode("ascii")))
        asks = answer.header(b"www-authenticate")
        if asks is not None:
            said.append((b"www-authenticate", b'Basic realm="carrel"' if self.basic else asks))
        return said
