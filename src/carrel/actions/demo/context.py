"""Where the demo plays: the world at some moment of the last days, and those who act in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from carrel.core.access import Actor
from carrel.core.identifiers import TimestampMs
from carrel.core.webhooks import PostResult
from carrel.ports import Clock, Ports


class EarlierClock:
    """A clock as it stood some time ago; what it names is named as of now."""

    def __init__(self, clock: Clock, ago: int) -> None:
        self._clock, self._ago = clock, ago

    def now(self) -> TimestampMs:
        return self._clock.now() - self._ago

    def new_id(self, prefix: str) -> str:
        return self._clock.new_id(prefix)

    def new_token(self, prefix: str) -> str:
        return self._clock.new_token(prefix)


class NoPost:
    """Asks nobody whether an address is there, and sends nothing."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return PostResult(None, "the demo sends nothing")

    async def refusal_reason(self, url: str) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class DemoContext:
    now: Ports
    people: dict[str, Actor]
    ago: int = 0

    @property
    def ports(self) -> Ports:
        return replace(
            self.now, clock=EarlierClock(self.now.clock, self.ago), webhook_sender=NoPost()
        )

    def person(self, name: str) -> Actor:
        return self.people[name]

    def earlier(self, milliseconds: int) -> DemoContext:
        return replace(self, ago=milliseconds)

    def later(self, milliseconds: int) -> DemoContext:
        return replace(self, ago=max(0, self.ago - milliseconds))
