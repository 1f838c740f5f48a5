"""An operation through an adapter and the same one by the plain client, timed in turn."""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from carrel_client import Client

URL: Final = os.environ["CARREL_URL"]
TOKEN: Final = os.environ["CARREL_TOKEN"]
SESSION_ENTRIES: Final = 4
"""Entries of the session that is read."""
_WARM_UP: Final = 5
Call = Callable[[int], Any]


@dataclass(frozen=True)
class Operation:
    """Both are called with a number that no call before had, and may be awaitable."""

    name: str
    """The adapter's call / the plain client's."""
    adapter: Call
    plain: Call

    async def check(self) -> None:
        """Warm both up. Raises RuntimeError unless they return the same."""
        for number in range(_WARM_UP):
            results = [await _finish(call(number)) for call in (self.adapter, self.plain)]
            if results[0] != results[1]:
                raise RuntimeError(f"{self.name}: {results[0]!r} is not {results[1]!r}")

    async def measure(self, numbers: Sequence[int]) -> tuple[float, float]:
        """Seconds of all calls of the adapter, and of the plain client."""
        seconds = [0.0, 0.0]
        for number in numbers:
            both = [(0, self.adapter), (1, self.plain)]
            for side, call in both if number % 2 else both[::-1]:
                started_at = time.perf_counter()
                await _finish(call(number))
                seconds[side] += time.perf_counter() - started_at
        return seconds[0], seconds[1]


async def _finish(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def measure(operations: Sequence[Operation], rounds: int, calls: int) -> None:
    """Print a line of JSON for each round and operation: its name and the two times."""
    for operation in operations:
        await operation.check()
    for number in range(1, rounds + 1):
        numbers = range(number * calls, (number + 1) * calls)
        for operation in operations:
            adapter, plain = await operation.measure(numbers)
            print(json.dumps([operation.name, adapter, plain]), flush=True)


def text(number: int) -> str:
    """4 KB of lines that differ for each number, so that every write is a new version."""
    return f"{number:08}\n" + ("x" * 62 + "\n") * 65


def new_workspace() -> str:
    with Client(URL, TOKEN) as client:
        return client.workspaces.create("adapters").id


def new_agent() -> str:
    with Client(URL, TOKEN) as client:
        return client.agents.create(f"agent-{time.time_ns()}").slug
