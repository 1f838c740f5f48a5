"""How an endpoint answers that keeps somebody else's convention: its headers, its way to say no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from carrel.faces.rest.answer import Answer, Pairs, encode
from carrel.faces.rest.problems import Problem

_problem: Final = msgspec.json.Decoder(Problem).decode


@dataclass(frozen=True, slots=True)
class Manner:
    headers: Pairs
    """On every answer at that address, refusals and OPTIONS included."""
    problem: Any
    """What refusals are, for the documentation."""
    retold: Callable[[Problem], Any]
    """A refusal or failure in other words."""

    def of(self, answer: Answer) -> Answer:
        body = answer.body if answer.status < 400 else encode(self.retold(_problem(answer.body)))
        return Answer(answer.status, body, [*answer.headers, *self.headers], answer.source)
