"""An instance that is kept between commands: its processes, its files, its jobs, its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from carrel.adapters.sandbox.local import change_detection, safe_walk
from carrel.adapters.sandbox.local.command_run import CommandOutcome
from carrel.adapters.sandbox.local.file_cache import FileCache
from carrel.adapters.sandbox.local.instance_exec import InstanceInit, InstanceJob
from carrel.adapters.sandbox.local.instance_files import InstanceFiles
from carrel.adapters.sandbox.local.local_sandbox import LocalResult, shield_until_done
from carrel.core.identifiers import Path, digest
from carrel.core.store.tree import Blob
from carrel.ports.sandbox import CommandResult, CommandSpec, InputFile

MOST_JOBS: Final = 10
_NOTHING_RAN: Final = CommandOutcome(None, b"", b"", False, 0, ())


def instance_spec(order: CommandSpec) -> tuple[Any, ...]:
    """What an instance is made by: with other terms it is another."""
    bounds = order.bounds
    bounded = (bounds.memory_mb, bounds.processes, bounds.disk_mb, bounds.network)
    return (*bounded, dict(order.env), dict(order.options), order.lifetime_seconds)


class InstanceResult(LocalResult):
    """What a command left in an instance; it is known what was read of it."""

    def __init__(
        self,
        outcome: CommandOutcome,
        told: change_detection.DirectoryChanges | None,
        root: int,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(outcome, told, root, notes)
        self.read: dict[Path, InputFile] = {}

    async def content(self, path: Path) -> bytes:
        content, self.read[path] = await asyncio.to_thread(self._looked_at, path)
        return content

    def _looked_at(self, path: Path) -> tuple[bytes, InputFile]:
        found = self._found[path]
        content = safe_walk.read(self._root, found.at, found.kind)
        return content, InputFile(self.changed[path].form, Blob(digest(content), len(content)))


class Instance:
    """Whoever begins something in it, or looks at its files, holds ``busy``."""

    def __init__(
        self, resident: InstanceInit, door: int, stage: int, cache: FileCache, order: CommandSpec
    ) -> None:
        self.resident, self.door, self._stage = resident, door, stage
        self._root = os.open("workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=stage)
        self.files = InstanceFiles(self._root, cache)
        self.terms, self.home = instance_spec(order), order.write_back
        self.busy = asyncio.Lock()
        self.jobs: dict[str, InstanceJob] = {}
        self.was_stopped = False
        self._left = False
        self._idle: asyncio.TimerHandle | None = None
        self._old: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether something may begin in it: not once it is being killed, though it still ends."""
        resident = self.resident
        return resident.is_alive and resident.killed_for is None and not self._left

    @asynccontextmanager
    async def look(self, files: Mapping[Path, InputFile]) -> AsyncIterator[CommandResult]:
        """As the port says; also when it was stopped, until it is closed."""
        async with self.busy, self.told(_NOTHING_RAN, files) as ran:
            yield ran

    @asynccontextmanager
    async def told(
        self,
        outcome: CommandOutcome,
        files: Mapping[Path, InputFile] | None,
        notes: tuple[str, ...] = (),
    ) -> AsyncIterator[CommandResult]:
        """What is other than these files, taken for brought back when this is left well."""
        if files is None:
            yield InstanceResult(outcome, None, self._root, notes)
            return
        told = await shield_until_done(asyncio.to_thread(self.files.compare, files))
        kept = InstanceResult(outcome, told, self._root, notes)
        yield kept
        if kept.discard_reason is None:
            self.files.settle(told, kept.read)

    def rest(self, seconds: float, stop: Callable[[], object]) -> None:
        """Stop it after so long without a command or a job."""
        self.wake()

        def fall() -> None:
            if self.busy.locked() or self.jobs:
                self.rest(max(1, seconds), stop)
            else:
                stop()

        self._idle = asyncio.get_running_loop().call_later(seconds, fall)

    def wake(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def age(self, seconds: float, stop: Callable[[], object]) -> None:
        """Stop it after so long, whatever there is."""
        self._old = asyncio.get_running_loop().call_later(seconds, stop)

    def leave(self) -> None:
        """Let nothing more begin in it."""
        self._left = True
        self.wake()
        if self._old is not None:
            self._old.cancel()

    async def stop(self) -> None:
        """End all that runs in it, once. Its files can still be looked at."""
        if not self.was_stopped:
            self.was_stopped = True
            await shield_until_done(self.resident.close())

    async def close(self) -> None:
        async with self.busy:
            os.close(self._root)
            os.close(self._stage)
