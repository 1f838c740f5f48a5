"""The log of events as a list; a cursor is how many came before."""

from __future__ import annotations

import asyncio
import re
from itertools import islice
from typing import Final

from msgspec.structs import replace

from carrel.adapters.memory.state import MemoryState
from carrel.core.errors import ValidationError
from carrel.core.store.event import Event, EventFilter

_CURSOR: Final = re.compile(r"[0-9]{1,18}")


class MemoryEvents:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        later = islice(self._state.events, _place(cursor), None)
        wanted = (event for event in later if filter is None or filter.admits(event))
        return tuple(replace(event, payload={**event.payload}) for event in islice(wanted, limit))

    async def latest(self) -> str:
        return str(len(self._state.events))

    async def wait_for_new(self, seconds: float) -> bool:
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._state.sleepers.add(sleeper)
        try:
            done, _ = await asyncio.wait({sleeper}, timeout=seconds)
        finally:
            self._state.sleepers.discard(sleeper)
        return bool(done)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not _CURSOR.fullmatch(cursor):
        raise ValidationError("that is not a cursor of this log")
    return int(cursor)
