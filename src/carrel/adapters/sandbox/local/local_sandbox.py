"""The local provider: its means picked once, its directories kept tidy, its commands run."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sandbox.local import change_detection, safe_walk
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import (
    CommandOutcome,
    CommandRun,
    IsolationTools,
    unsupported_reason,
)
from carrel.adapters.sandbox.local.directory_lease import DirectoryLease
from carrel.adapters.sandbox.local.file_cache import (
    FileCache,
    MaterializedFiles,
    fetched,
    key_of,
    read_batch_size,
)
from carrel.adapters.sandbox.local.landlock import LandlockCommand, remove
from carrel.adapters.sandbox.local.self_test import (
    ESCAPED,
    NONE,
    SandboxSettings,
    detect_isolation,
    escape_attempt,
    plant_probe,
    sandbox_user,
)
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.store.tree import Blob
from carrel.ports.sandbox import (
    ChangedFile,
    CommandResult,
    CommandSpec,
    Fetch,
    FileKind,
    InputFile,
    ResourceLimits,
    SandboxUnavailable,
)

Result = TypeVar("Result")
ONLY_LOOKED_AT: Final = (
    "memoryLimit cannot be enforced here: there are no control groups, so that memory is only"
    " looked at; leave memoryLimit out, or have whoever runs the server see to them"
)
MOST_LEFT: Final = 50_000
Mark = tuple[int, int, int]


class LocalResult:
    """A command that has ended, and its directory."""

    def __init__(
        self,
        outcome: CommandOutcome,
        told: change_detection.DirectoryChanges | None,
        root: int,
        notes: tuple[str, ...],
    ) -> None:
        self.exit_code = outcome.code
        self.stdout, self.stderr = outcome.stdout, outcome.stderr
        self.timed_out, self.milliseconds = outcome.timed_out, outcome.milliseconds
        self.discard_reason = told.overflow if told else None
        kept = told if told and not told.overflow else None
        self.changed: Mapping[Path, ChangedFile] = kept.changed if kept else {}
        self.deleted: frozenset[Path] = kept.deleted if kept else frozenset()
        self._found = kept.found if kept else {}
        self.notes = (*outcome.notes, *notes, *(told.notes if told else ()))
        self._root = root

    async def content(self, path: Path) -> bytes:
        found = self._found[path]
        return await asyncio.to_thread(safe_walk.read, self._root, found.at, found.kind)


class EphemeralSandbox:
    """Each command by itself. All it keeps is beneath one directory, which several may share."""

    def __init__(
        self,
        directory: File,
        wishes: SandboxSettings = SandboxSettings(),
        tried: IsolationTools | None = None,
    ) -> None:
        """``tried`` are the means of another that was ready on this machine, by equal wishes."""
        # A mount is made from another directory than the server's.
        self._directory, self._wishes, self._tried = directory.absolute(), wishes, tried
        self._means: IsolationTools | None = None
        self._testing = asyncio.Lock()
        self._keep: DirectoryLease | None = None
        self._cache: FileCache | None = None
        self._numbers = itertools.count(1)
        self._spare: ChildProcess | None = None
        """Up already, since an interpreter takes longer to start than all the rest."""

    @property
    def tier(self) -> str:
        return self._means.tier if self._means else "untested"

    @property
    def lacking(self) -> tuple[str, ...]:
        """What is missing on this machine, in words."""
        return self._means.lacking if self._means else ()

    async def ready(self) -> IsolationTools:
        """Find out what isolates here, the first time."""
        async with self._testing:
            if self._means is None:
                uid, gid, drop = sandbox_user(self._wishes)
                if self._keep is None:
                    self._keep = await asyncio.to_thread(
                        DirectoryLease.try_acquire, self._directory
                    )
                owner = (uid, gid) if drop else None
                self._cache = FileCache(self._keep.bytes_for(uid), self._keep.farms, owner)
                self._means = self._tried or await detect_isolation(self._wishes, self._attempt)
        return self._means

    async def _attempt(self, means: IsolationTools) -> None:
        """Try to get out. Raises Refused where that works, or nothing does."""

        async def fetch(blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
            return {blob.digest: b"old\n" for blob in blobs}

        old = InputFile(FileKind.FILE, Blob(digest(b"old\n"), 4))
        files = {Path("d/a"): old, Path("e"): old}
        with plant_probe() as (canary, port):
            order = CommandSpec(
                "trial", escape_attempt(canary, port), files, ResourceLimits(seconds=20)
            )
            async with AsyncExitStack() as held:
                left = await self._ran(means, order, fetch, held)
            if left.exit_code != 0:
                raise SandboxUnavailable(ESCAPED.get(left.exit_code or 0, "a command does not run"))
            if set(left.changed) != {Path("d/c"), Path("e")} or left.deleted != {Path("d/a")}:
                raise SandboxUnavailable("what a command changes cannot be told")

    async def close(self) -> None:
        if self._spare is not None:
            await shield_until_done(self._spare.end())
            self._spare = None
        if self._keep is not None:
            await asyncio.to_thread(self._keep.release)
            self._keep, self._means = None, None

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        if self._means is None:
            return None
        if self._means.tier == NONE:
            return "no isolation available: " + "; ".join(self._means.lacking)
        if bounds.network and not self._wishes.network:
            return (
                "this server lets no command reach the network; whoever runs it can allow that"
                " with CARREL_SANDBOX_NETWORK"
            )
        if bounds.network and self._means.landlock:
            return "a command behind Landlock has no network"
        if bounds.memory_limit_required and self._means.cgroups is None:
            return ONLY_LOOKED_AT
        return unsupported_reason(bounds, "")

    def unfit(self, order: CommandSpec, *, persistent: bool = False) -> str | None:
        """Why an order cannot be followed here, or None."""
        reason = self.unsupported_reason(order.bounds, persistent=persistent)
        return reason or unsupported_reason(order.bounds, order.command)

    @asynccontextmanager
    async def run(self, order: CommandSpec, fetch: Fetch) -> AsyncIterator[CommandResult]:
        means = await self.ready()
        if reason := self.unfit(order):
            raise SandboxUnavailable(reason)
        async with AsyncExitStack() as held:
            yield await self._ran(means, order, fetch, held)

    async def _ran(
        self, means: IsolationTools, order: CommandSpec, fetch: Fetch, held: AsyncExitStack
    ) -> LocalResult:
        running = await self._running(means, order, held)
        try:
            laid, targets = await shield_until_done(self._materialize(means, order, fetch, held))
            stage = await running.prepare(laid.farm)
            held.callback(os.close, stage)
            place = "workspace" if laid.farm is None else "upper"
            root = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=stage)
            held.callback(os.close, root)
            marks = await self._copied(root, laid, targets)
            outcome = await running.finish()
        finally:
            await shield_until_done(running.close())
            if self._keep is not None:
                self._spare = self._spare or ChildProcess()
        told = None
        if order.files is not None:
            told = await shield_until_done(asyncio.to_thread(_compared, root, laid, marks))
        return LocalResult(outcome, told, root, laid.notes)

    async def _running(
        self, means: IsolationTools, order: CommandSpec, held: AsyncExitStack
    ) -> CommandRun:
        """Raises Refused."""
        child = self._child()
        try:
            return self._begun(means, order, held, child)
        except BaseException:
            await shield_until_done(child.end())
            raise

    def _child(self) -> ChildProcess:
        child, self._spare = self._spare or ChildProcess(), None
        return child

    def _begun(
        self, means: IsolationTools, order: CommandSpec, held: AsyncExitStack, child: ChildProcess
    ) -> CommandRun:
        assert self._keep is not None
        number = next(self._numbers)
        if not means.landlock:
            return CommandRun(means, order, f"{self._keep.name}-{number}", child)
        place = self._keep.place / f"run-{number}"
        held.push_async_callback(lambda: shield_until_done(asyncio.to_thread(remove, place)))
        return LandlockCommand(means, order, f"{self._keep.name}-{number}", child, place)

    async def _materialize(
        self, means: IsolationTools, order: CommandSpec, fetch: Fetch, held: AsyncExitStack
    ) -> tuple[MaterializedFiles, Mapping[Digest, bytes]]:
        """What the command will find: a farm where overlays work, else what is to be copied."""
        cache, files = self._cache, order.files or {}
        assert cache is not None
        key = key_of(files) if means.overlay else ""
        laid = cache.held(key)
        targets: Mapping[Digest, bytes] = {}
        if laid is None:
            targets = await fetched(cache, files, fetch)
            laid = read_batch_size(files, targets)
            if means.overlay and laid.files:
                laid = await asyncio.to_thread(cache.hold, key, targets, laid)
        if laid.farm is not None:
            held.callback(cache.let_go, key)
        return laid, targets

    async def _copied(
        self, root: int, laid: MaterializedFiles, targets: Mapping[Digest, bytes]
    ) -> dict[Path, Mark]:
        if laid.farm is not None or not laid.files:
            return {}
        assert self._cache is not None
        copying = asyncio.to_thread(self._cache.copy, root, laid.files, targets)
        return await shield_until_done(copying)


def _compared(
    root: int, laid: MaterializedFiles, marks: Mapping[Path, Mark]
) -> change_detection.DirectoryChanges:
    def read(found: safe_walk.DirEntry) -> bytes:
        return safe_walk.read(root, found.at, found.kind)

    try:
        found = tuple(safe_walk.walk(root, MOST_LEFT + len(laid.files)))
    except safe_walk.TooManyEntries:
        return change_detection.DirectoryChanges({}, {}, frozenset(), (), change_detection.FLOODED)
    if laid.farm is not None:
        return change_detection.of_overlay(laid.files, found, read)
    return change_detection.of_copy(laid.files, marks, found, read)


async def shield_until_done(work: Coroutine[Any, Any, Result]) -> Result:
    """Also if whoever asked has left: what is half done would be left behind."""
    doing = asyncio.ensure_future(work)
    left: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError as gone:
            left = gone
        except BaseException:
            break
    if left is not None:
        with suppress(BaseException):
            doing.result()
        raise left
    return doing.result()
