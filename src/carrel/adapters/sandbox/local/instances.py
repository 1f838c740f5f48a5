"""A sandbox instance that persists between commands: processes, files and jobs."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from carrel.adapters.sandbox.local import change_detection
from carrel.adapters.sandbox.local.command_run import CommandOutcome, close_directories
from carrel.adapters.sandbox.local.ephemeral_sandbox import LocalResult, shield_until_done
from carrel.adapters.sandbox.local.file_cache import FileCache
from carrel.adapters.sandbox.local.instance_exec import InstanceInit, InstanceJob
from carrel.adapters.sandbox.local.instance_files import InstanceFiles
from carrel.adapters.sandbox.local.materialized_files import MaterializedFiles
from carrel.core.identifiers import Digest, Path
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import CommandResult, CommandSpec, InputFile

MAX_JOBS: Final = 10
_NO_OUTCOME: Final = CommandOutcome(None, b"", b"", False, 0, ())


def instance_terms(spec: CommandSpec) -> tuple[Any, ...]:
    """Properties that fix an instance; a spec with other terms needs a new one."""
    bounds = spec.limits
    limits = (bounds.memory_mb, bounds.processes, bounds.disk_mb, bounds.network)
    return (*limits, dict(spec.env), dict(spec.options), spec.lifetime_seconds)


class InstanceResult(LocalResult):
    """Result of a command in an instance; records which files were read."""

    def __init__(
        self,
        outcome: CommandOutcome,
        changes: change_detection.DirectoryChanges | None,
        root: int,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(outcome, changes, root, notes)
        self.read: dict[Path, InputFile] = {
            path: InputFile(changed.kind, changed.blob, changed.mode, changed.mtime_ns)
            for path, changed in self.changed.items()
            if changed.blob is not None
        }

    def read_parts(self, path: Path) -> Iterator[bytes]:
        hasher, size = hashlib.sha256(), 0
        for part in super().read_parts(path):
            hasher.update(part)
            size += len(part)
            yield part
        blob = Blob(Digest(f"sha256:{hasher.hexdigest()}"), size)
        changed = self.changed[path]
        self.read[path] = InputFile(changed.kind, blob, changed.mode, changed.mtime_ns)


class Instance:
    """Running persistent sandbox: namespaces, an init process and a directory.

    Callers hold ``busy`` to start a command in it or to read its files.
    """

    def __init__(
        self,
        init_process: InstanceInit,
        namespace_pid: int,
        stage: int,
        cache: FileCache,
        spec: CommandSpec,
    ) -> None:
        self.init_process, self.namespace_pid, self._stage = init_process, namespace_pid, stage
        self._root = os.open("workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=stage)
        self.files = InstanceFiles(self._root, cache)
        self.terms, self.write_back = instance_terms(spec), spec.write_back
        self.busy = asyncio.Lock()
        self.jobs: dict[str, InstanceJob] = {}
        self.was_stopped = False
        self._is_retired = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._lifetime_timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether something may start in it; False once it is being killed."""
        init_process = self.init_process
        return init_process.is_alive and init_process.kill_reason is None and not self._is_retired

    @asynccontextmanager
    async def inspect(
        self,
        files: Mapping[Path, InputFile],
        directories: Mapping[Path, FileAttributes],
        root: FileAttributes,
    ) -> AsyncIterator[CommandResult]:
        """Yield the changes since the last write-back. Works until the instance is closed."""
        base = MaterializedFiles(files, (), directories=directories, root=root)
        async with self.busy, self.open_result(_NO_OUTCOME, base) as result:
            yield result

    @asynccontextmanager
    async def open_result(
        self,
        outcome: CommandOutcome,
        base: MaterializedFiles | None,
        notes: tuple[str, ...] = (),
    ) -> AsyncIterator[CommandResult]:
        """Yield the result; files that were read count as written back on success."""
        if base is None:
            yield InstanceResult(outcome, None, self._root, notes)
            return
        changes = await shield_until_done(asyncio.to_thread(self.files.compare, base))
        result = InstanceResult(outcome, changes, self._root, notes)
        try:
            yield result
        finally:
            await shield_until_done(asyncio.to_thread(self.files.restore_modes))
        if result.discard_reason is None:
            self.files.mark_synced(changes, result.read)

    def stop_when_idle(self, seconds: float, stop: Callable[[], object]) -> None:
        """Call `stop` after `seconds` without a command or a job."""
        self.cancel_idle_stop()

        def on_timer() -> None:
            if self.busy.locked() or self.jobs:
                self.stop_when_idle(max(1, seconds), stop)
            else:
                stop()

        self._idle_timer = asyncio.get_running_loop().call_later(seconds, on_timer)

    def cancel_idle_stop(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def stop_after(self, seconds: float, stop: Callable[[], object]) -> None:
        """Call `stop` after `seconds`, even if something runs."""
        self._lifetime_timer = asyncio.get_running_loop().call_later(seconds, stop)

    def retire(self) -> None:
        """Let nothing start in it any more."""
        self._is_retired = True
        self.cancel_idle_stop()
        if self._lifetime_timer is not None:
            self._lifetime_timer.cancel()

    async def stop(self) -> None:
        """Kill everything in it. Safe to call twice; its files can still be read."""
        if not self.was_stopped:
            self.was_stopped = True
            await shield_until_done(self.init_process.close())

    async def close(self) -> None:
        async with self.busy:
            await shield_until_done(close_directories([self._root, self._stage]))
