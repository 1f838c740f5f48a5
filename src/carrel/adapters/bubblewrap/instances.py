"""An instance that is kept between commands: its processes, its files, its jobs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from carrel.adapters.bubblewrap import comparing, walking
from carrel.adapters.bubblewrap.cache import Cache, Laid
from carrel.adapters.bubblewrap.visiting import Resident, Work
from carrel.adapters.bubblewrap.walking import Found, Kind
from carrel.core.names import Digest, Path, digest
from carrel.ports.sandboxes import Form, Placed

MOST_JOBS: Final = 10
MOST_LEFT: Final = 50_000
Mark = tuple[int, int, int]


class Instance:
    """Its workspace is brought up to date before each command: whatever was not touched inside
    since the last one. What was touched is left as it is, and is told as changed.
    """

    def __init__(self, resident: Resident, door: int, stage: int, cache: Cache) -> None:
        self.resident, self.door, self._stage, self._cache = resident, door, stage, cache
        self.root = os.open("workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=stage)
        self.busy = asyncio.Lock()
        self.jobs: dict[str, Work] = {}
        self.timer: asyncio.TimerHandle | None = None
        self._seen: dict[str, Mark] = {}
        self._ours: set[str] = set()
        """What was laid here or told as changed: what may be removed where it is gone elsewhere."""

    def bring(self, laid: Laid, targets: Mapping[Digest, bytes]) -> dict[Path, Mark]:
        """Lay what is new, remove what is gone; gives the marks of what is as it should be."""
        there = {found.text: found for found in walking.walk(self.root, MOST_LEFT)}
        wanted = {path.text for path in laid.files}
        for text in sorted(self._ours - wanted, reverse=True):
            found = there.get(text)
            if found and self._is_clean(found):
                self._remove(found)
        for path, placed in laid.files.items():
            found = there.get(path.text)
            if found is None and path.text in self._seen:
                continue  # it was deleted in here
            if found is None or (self._is_clean(found) and not self._is(found, placed)):
                if found is not None:
                    self._remove(found)
                self._cache.lay(self.root, path, placed, targets)
        self._ours |= wanted
        return self._marks(laid)

    def _marks(self, laid: Laid) -> dict[Path, Mark]:
        by_text = {path.text: (path, placed) for path, placed in laid.files.items()}
        marks = {}
        for found in walking.walk(self.root, MOST_LEFT):
            path, placed = by_text.get(found.text, (None, None))
            if path and placed and self._is(found, placed):
                marks[path] = found.mark
        return marks

    def _is_clean(self, found: Found) -> bool:
        return self._seen.get(found.text) == found.mark

    def _is(self, found: Found, placed: Placed) -> bool:
        if found.kind not in {Kind.FILE, Kind.LINK} or found.size != placed.blob.size:
            return False
        form = Form.LINK if found.kind is Kind.LINK else Form.FILE
        if form is Form.FILE and found.mode & 0o111:
            form = Form.EXECUTABLE
        return form is placed.form and digest(self._read(found)) == placed.blob.digest

    def _read(self, found: Found) -> bytes:
        return walking.read(self.root, found.at, found.kind)

    def _remove(self, found: Found) -> None:
        with walking.parent_of(self.root, found.at) as parent:
            os.unlink(found.at[-1], dir_fd=parent)

    def compare(self, laid: Laid, marks: Mapping[Path, Mark]) -> comparing.Differences:
        """What is other than it was given, whoever in here changed it."""
        try:
            found = tuple(walking.walk(self.root, MOST_LEFT))
        except walking.TooMany:
            return comparing.Differences({}, {}, frozenset(), (), comparing.FLOODED)
        self._seen = {each.text: each.mark for each in found}
        told = comparing.of_copy(laid.files, marks, found, self._read)
        if told.overflow is None:
            self._ours |= {each.text for each in told.found.values()}
        return told

    def rest(self, seconds: float, stop: Callable[[], Awaitable[None]]) -> None:
        """Stop it after so long without a command or a job."""
        loop = asyncio.get_running_loop()
        self.wake()

        def fall() -> None:
            if self.busy.locked() or self.jobs:
                self.rest(seconds, stop)
            else:
                task = loop.create_task(_done(stop))
                task.add_done_callback(lambda _: None)

        self.timer = loop.call_later(seconds, fall)

    def wake(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    async def close(self) -> None:
        self.wake()
        await self.resident.close()
        os.close(self.root)
        os.close(self._stage)


async def _done(stop: Callable[[], Awaitable[None]]) -> None:
    await stop()
