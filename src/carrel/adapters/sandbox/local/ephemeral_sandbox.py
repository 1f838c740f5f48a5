"""Local sandbox for single commands: detects isolation and runs commands."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path as File
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from carrel.adapters.sandbox.local import change_detection, directory_comparison, safe_walk
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import (
    CommandOutcome,
    CommandRun,
    IsolationTools,
    close_directories,
    unsupported_reason,
)
from carrel.adapters.sandbox.local.directory_lease import DirectoryLease
from carrel.adapters.sandbox.local.file_cache import FileCache, fetch_missing
from carrel.adapters.sandbox.local.isolation import (
    FAILURE_REASONS,
    NONE,
    PROBE_CONTENT,
    ProbeContents,
    SandboxSettings,
    detect_isolation,
    escape_attempt,
    plant_probe,
    sandbox_user,
)
from carrel.adapters.sandbox.local.landlock import LandlockCommand
from carrel.adapters.sandbox.local.materialized_files import (
    MaterializedFiles,
    contents_only,
    files_key,
    supported_files,
)
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    ChangedFile,
    CommandResult,
    CommandSpec,
    FileKind,
    InputFile,
    ResourceLimits,
    SandboxUnavailable,
)

Result = TypeVar("Result")
MEMORY_LIMIT_NOT_ENFORCED: Final = (
    "memoryLimit cannot be enforced: this server has no control groups and only polls memory;"
    " omit memoryLimit or ask the operator to enable control groups"
)
MAX_ENTRIES: Final = 50_000
FileStamp = tuple[int, int, int]


class LocalResult:
    """A finished command and its directory."""

    def __init__(
        self,
        outcome: CommandOutcome,
        changes: change_detection.DirectoryChanges | None,
        root: int,
        notes: tuple[str, ...],
    ) -> None:
        self.exit_code = outcome.code
        self.stdout, self.stderr = outcome.stdout, outcome.stderr
        self.timed_out, self.duration_ms = outcome.timed_out, outcome.milliseconds
        self.discard_reason = changes.overflow if changes else None
        accepted = changes if changes and not changes.overflow else None
        self.changed: Mapping[Path, ChangedFile] = accepted.changed if accepted else {}
        self.deleted: frozenset[Path] = accepted.deleted if accepted else frozenset()
        self.directories: Mapping[Path, FileAttributes] | None = (
            accepted.directories if accepted else {}
        )
        self.root = accepted.root if accepted else None
        self._entries = accepted.entries if accepted else {}
        self.notes = (*outcome.notes, *notes, *(changes.notes if changes else ()))
        self._root = root

    async def content(self, path: Path) -> bytes:
        return await asyncio.to_thread(lambda: b"".join(self.read_parts(path)))

    def read_parts(self, path: Path) -> Iterator[bytes]:
        entry = self._entries[path]
        return safe_walk.read_parts(self._root, entry.segments, entry.kind)


class EphemeralSandbox:
    """Runs each command in a new sandbox. Processes may share the directory."""

    def __init__(
        self,
        directory: File,
        settings: SandboxSettings = SandboxSettings(),
        tested_tools: IsolationTools | None = None,
    ) -> None:
        """``tested_tools`` come from another instance with equal settings."""
        # The launcher runs in another working directory.
        self._directory, self._settings, self._tested_tools = (
            directory.absolute(),
            settings,
            tested_tools,
        )
        self._tools: IsolationTools | None = None
        self._test_lock = asyncio.Lock()
        self._lease: DirectoryLease | None = None
        self._cache: FileCache | None = None
        self._run_numbers = itertools.count(1)
        self._spare_child: ChildProcess | None = None
        """Started ahead, since the interpreter takes longest to start."""

    @property
    def tier(self) -> str:
        return self._tools.tier if self._tools else "untested"

    @property
    def missing_features(self) -> tuple[str, ...]:
        """Isolation features missing on this machine, as text."""
        return self._tools.missing_features if self._tools else ()

    async def ready(self) -> IsolationTools:
        """Detect the isolation tools on the first call."""
        async with self._test_lock:
            if self._tools is None:
                self._cache = self._cache or await self._open_cache()
                self._tools = self._tested_tools or await detect_isolation(
                    self._settings, self._attempt
                )
        return self._tools

    async def _open_cache(self) -> FileCache:
        """Open the cache of this process, which also removes the files of dead processes."""
        uid, gid, drop = sandbox_user(self._settings)
        if self._lease is None:
            self._lease = await asyncio.to_thread(DirectoryLease.try_acquire, self._directory)
        owner = (uid, gid) if drop else None
        return FileCache(self._lease.content_directory(uid), self._lease.farms_directory, owner)

    async def clear_cache(self) -> None:
        """Remove the files that earlier commands were given."""
        if not self._directory.exists():
            return
        async with self._test_lock:
            self._cache = self._cache or await self._open_cache()
        await asyncio.to_thread(self._cache.clear)

    async def _attempt(self, tools: IsolationTools) -> None:
        """Run an escape attempt. Raises SandboxUnavailable if it succeeds or cannot run."""
        old = InputFile(FileKind.FILE, Blob(digest(PROBE_CONTENT), len(PROBE_CONTENT)))
        files = {Path("d/a"): old, Path("e"): old}
        with plant_probe() as (canary, port):
            spec = CommandSpec(
                "trial", escape_attempt(canary, port), files, ResourceLimits(seconds=20)
            )
            async with AsyncExitStack() as stack:
                result = await self._run_command(tools, spec, ProbeContents(), stack)
            if result.exit_code != 0:
                raise SandboxUnavailable(
                    FAILURE_REASONS.get(result.exit_code or 0, "commands cannot run")
                )
            if set(result.changed) != {Path("d/c"), Path("e")} or result.deleted != {Path("d/a")}:
                raise SandboxUnavailable("changes of a command cannot be detected")

    async def close(self) -> None:
        if self._spare_child is not None:
            await shield_until_done(self._spare_child.end())
            self._spare_child = None
        if self._lease is not None:
            await asyncio.to_thread(self._lease.release)
            self._lease, self._tools, self._cache = None, None, None

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if self._tools is None:
            return None
        if self._tools.tier == NONE:
            return "no isolation available: " + "; ".join(self._tools.missing_features)
        if limits.network and not self._settings.network:
            return (
                "network access is disabled on this server; the operator can enable it"
                " with CARREL_SANDBOX_NETWORK"
            )
        if limits.network and self._tools.landlock:
            return "network access is not supported with Landlock"
        if limits.memory_limit_required and self._tools.cgroups is None:
            return MEMORY_LIMIT_NOT_ENFORCED
        return unsupported_reason(limits, "")

    def unsupported_spec_reason(self, spec: CommandSpec, *, persistent: bool = False) -> str | None:
        """Return why this command cannot run here, or None."""
        reason = self.unsupported_reason(spec.limits, persistent=persistent)
        return reason or unsupported_reason(spec.limits, spec.command)

    @asynccontextmanager
    async def run(self, spec: CommandSpec, blobs: BlobReader) -> AsyncIterator[CommandResult]:
        tools = await self.ready()
        if reason := self.unsupported_spec_reason(spec):
            raise SandboxUnavailable(reason)
        async with AsyncExitStack() as stack:
            yield await self._run_command(tools, spec, blobs, stack)

    async def _run_command(
        self, tools: IsolationTools, spec: CommandSpec, blobs: BlobReader, stack: AsyncExitStack
    ) -> LocalResult:
        command_run = await self._start_run(tools, spec, stack)
        try:
            materialized, targets = await shield_until_done(
                self._materialize(tools, spec, blobs, stack)
            )
            stage = await command_run.prepare(materialized.farm)
            _close_later(stack, stage)
            subdirectory = "workspace" if materialized.farm is None else "upper"
            root = os.open(subdirectory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=stage)
            _close_later(stack, root)
            stamps = await self._copy_files(root, materialized, targets)
            await asyncio.to_thread(_set_root_attributes, stage, spec.root)
            root_before = directory_comparison.root_attributes(root)
            outcome = await command_run.finish()
        finally:
            await shield_until_done(command_run.close())
            if self._lease is not None:
                self._spare_child = self._spare_child or ChildProcess()
        changes = None
        if spec.files is not None:
            changes = await shield_until_done(
                asyncio.to_thread(_compare_directory, root, materialized, stamps, root_before)
            )
        return LocalResult(outcome, changes, root, materialized.notes)

    async def _start_run(
        self, tools: IsolationTools, spec: CommandSpec, stack: AsyncExitStack
    ) -> CommandRun:
        """Raises SandboxUnavailable."""
        child = self._take_child()
        try:
            return self._new_run(tools, spec, stack, child)
        except BaseException:
            await shield_until_done(child.end())
            raise

    def _take_child(self) -> ChildProcess:
        child, self._spare_child = self._spare_child or ChildProcess(), None
        return child

    def _new_run(
        self, tools: IsolationTools, spec: CommandSpec, stack: AsyncExitStack, child: ChildProcess
    ) -> CommandRun:
        assert self._lease is not None
        number = next(self._run_numbers)
        if not tools.landlock:
            return CommandRun(tools, spec, f"{self._lease.name}-{number}", child)
        directory = self._lease.directory / f"run-{number}"
        stack.push_async_callback(
            lambda: shield_until_done(asyncio.to_thread(safe_walk.remove_directory, directory))
        )
        return LandlockCommand(tools, spec, f"{self._lease.name}-{number}", child, directory)

    async def _materialize(
        self, tools: IsolationTools, spec: CommandSpec, blobs: BlobReader, stack: AsyncExitStack
    ) -> tuple[MaterializedFiles, Mapping[Digest, bytes]]:
        """Return the command's files: a farm if overlays work, else files to copy."""
        cache, files = self._cache, spec.files or {}
        assert cache is not None
        key = files_key(files, spec.directories) if tools.overlay else ""
        materialized = cache.acquire_existing(key)
        targets: Mapping[Digest, bytes] = {}
        if materialized is None:
            cached_files = files if tools.overlay else contents_only(files)
            targets = await fetch_missing(cache, cached_files, blobs)
            materialized = supported_files(files, spec.directories, targets)
            if tools.overlay and not materialized.is_empty:
                try:
                    materialized = await asyncio.to_thread(
                        cache.acquire, key, targets, materialized
                    )
                except FileNotFoundError:  # the cache was cleared meanwhile
                    await fetch_missing(cache, cached_files, blobs)
                    materialized = await asyncio.to_thread(
                        cache.acquire, key, targets, materialized
                    )
        if materialized.farm is not None:
            stack.callback(cache.release, key)
        return materialized, targets

    async def _copy_files(
        self, root: int, materialized: MaterializedFiles, targets: Mapping[Digest, bytes]
    ) -> dict[Path, FileStamp]:
        if materialized.farm is not None or materialized.is_empty:
            return {}
        assert self._cache is not None
        copy = asyncio.to_thread(self._cache.copy, root, materialized, targets)
        return await shield_until_done(copy)


def _set_root_attributes(stage: int, attributes: FileAttributes) -> None:
    """Set mode and time of the directory that the command sees. Raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    root = os.open("workspace", flags, dir_fd=stage)
    try:
        directory_comparison.set_root_attributes(root, attributes)
    finally:
        os.close(root)


def _compare_directory(
    root: int,
    materialized: MaterializedFiles,
    stamps: Mapping[Path, FileStamp],
    root_before: FileAttributes,
) -> change_detection.DirectoryChanges:
    changed_root = directory_comparison.changed_root(root, root_before)
    changes = _compare_entries(root, materialized, stamps)
    return changes if changes.overflow else replace(changes, root=changed_root)


def _compare_entries(
    root: int, materialized: MaterializedFiles, stamps: Mapping[Path, FileStamp]
) -> change_detection.DirectoryChanges:
    hash_entry = partial(safe_walk.hash_entry, root)
    try:
        entries = tuple(safe_walk.walk(root, MAX_ENTRIES + len(materialized.files)))
    except safe_walk.TooManyEntries:
        return change_detection.TOO_MANY_CHANGES
    base = change_detection.InitialFiles(materialized.files, materialized.directories)
    if materialized.farm is not None:
        return change_detection.changes_in_overlay(base, entries, hash_entry)
    return change_detection.changes_in_copy(base, stamps, entries, hash_entry)


def _close_later(stack: AsyncExitStack, directory: int) -> None:
    stack.push_async_callback(lambda: shield_until_done(close_directories([directory])))


async def shield_until_done(work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work` to its end even when cancelled, then raise CancelledError."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:
            break
    if cancelled is not None:
        with suppress(BaseException):
            task.result()
        raise cancelled
    return task.result()
