"""The course of one command on a machine elsewhere: files go in, it runs, what changed comes back.

By the time that the caller sees what came of it, the machine is gone.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import IO, Final, Protocol

from msgspec import Struct

from carrel.adapters.sandbox.remote.bounded_output import BoundedOutput
from carrel.adapters.sandbox.remote.manifest import (
    ListedFile,
    ManifestUnreadable,
    RemoteChanges,
    differences,
    listed,
)
from carrel.adapters.sandbox.remote.scripts import (
    LONGEST_LISTING,
    LOOK,
    RUN,
    SEND,
    RemotePaths,
    scripts,
)
from carrel.adapters.sandbox.remote.tar_transfer import (
    Expected,
    Owner,
    TransferDamaged,
    most_bytes,
    pack_tar,
    unpack_tar,
    wanted,
)
from carrel.core.identifiers import Path
from carrel.ports.sandbox import ChangedFile, CommandSpec, Fetch, FileKind, SandboxUnavailable

Take = Callable[[bytes], None]
LONGEST_COMMAND: Final = 96 * 1024
"""What a kernel takes as one argument is 128 KiB."""
LOST: Final = 137
"""How a command ended whose machine was gone before it could tell."""
GRACE: Final = 15.0
_LOOKING: Final = 120.0
_IN_MEMORY: Final = 4 * 2**20


class ProviderUnreachable(Exception):
    """A provider did not do what it was asked for; the message is safe to show."""


class RemoteMachine(Protocol):
    """A computer elsewhere that is ours for one command. Each method raises Unreachable."""

    place: RemotePaths
    owner: Owner

    async def put(self, parcel: bytes) -> None:
        """Unpack a tar in its root."""

    async def execute(self, words: Sequence[str], out: Take, err: Take) -> int:
        """Run a program to its end, without input. Cancelling may leave it behind."""


class RemoteResult(Struct):
    """A command that has ended elsewhere; what it changed lies in a file of ours."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    milliseconds: int
    changed: Mapping[Path, ChangedFile]
    deleted: frozenset[Path]
    discard_reason: str | None
    notes: tuple[str, ...]
    links: Mapping[Path, bytes]
    offsets: Mapping[Path, int]
    file: IO[bytes]

    async def content(self, path: Path) -> bytes:
        if path in self.links:
            return self.links[path]
        return await asyncio.to_thread(self._read, self.offsets[path], self.changed[path].size)

    def _read(self, start: int, size: int) -> bytes:
        self.file.seek(start)
        return self.file.read(size)


class CommandEnd(Struct, frozen=True):
    """How a command ended."""

    exit_code: int | None
    timed_out: bool
    milliseconds: int


class RemoteReport(Struct, frozen=True):
    """All that a machine has told, before it is gone."""

    end: CommandEnd
    stdout: bytes
    stderr: bytes
    left: RemoteChanges
    offsets: Mapping[Path, int]


Open = Callable[[CommandSpec], AbstractAsyncContextManager[RemoteMachine]]


@asynccontextmanager
async def run_remotely(
    order: CommandSpec, fetch: Fetch, opened: Open
) -> AsyncIterator[RemoteResult]:
    """Run an order on a machine that is opened for it. Raises Refused where nothing was run."""
    check_order(order)
    files = order.files or {}
    contents = await fetch({placed.blob for placed in files.values()})
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        try:
            async with opened(order) as machine:
                made = scripts(order, machine.place)
                await machine.put(pack_tar(files, contents, made, machine.owner))
                told = await _told(machine, order, spool)
        except ProviderUnreachable as problem:
            raise SandboxUnavailable(str(problem)) from problem
        yield result_of(told, spool)


def check_order(order: CommandSpec) -> None:
    """Raises Refused for a reservation, and where a command is longer than can be passed on."""
    if order.instance_key is not None:
        raise SandboxUnavailable("this provider keeps no instance between commands")
    size = len(order.command.encode())
    around = sum(len(name.encode()) + len(value.encode()) for name, value in order.env.items())
    if max(size, around) > LONGEST_COMMAND:
        raise SandboxUnavailable(
            f"a command of {size} bytes with {around} bytes of variables cannot be passed on:"
            f" {LONGEST_COMMAND} are the most; write a file and run that"
        )


def result_of(told: RemoteReport, file: IO[bytes]) -> RemoteResult:
    changed = told.left.changed
    return RemoteResult(
        exit_code=told.end.exit_code,
        stdout=told.stdout,
        stderr=told.stderr,
        timed_out=told.end.timed_out,
        milliseconds=told.end.milliseconds,
        changed={path: ChangedFile(seen.form, seen.size) for path, seen in changed.items()},
        deleted=told.left.deleted,
        discard_reason=told.left.unkept,
        notes=told.left.notes,
        links={path: seen.target for path, seen in changed.items() if seen.target is not None},
        offsets=told.offsets,
        file=file,
    )


async def _told(machine: RemoteMachine, order: CommandSpec, spool: IO[bytes]) -> RemoteReport:
    out, err = BoundedOutput(order.bounds.output_bytes), BoundedOutput(order.bounds.output_bytes)
    began = asyncio.get_running_loop().time()
    read_timeouts = order.bounds.seconds + GRACE
    try:
        async with asyncio.timeout(read_timeouts):
            code = await machine.execute(machine.place.script(RUN), out, err)
        seen, left, offsets = await _left(machine, order, spool)
    except (ProviderUnreachable, TimeoutError) as problem:
        took = int(1000 * (asyncio.get_running_loop().time() - began))
        is_late = isinstance(problem, TimeoutError)
        end = CommandEnd(None if is_late else LOST, is_late, took)
        left, offsets = nothing("its machine was lost before it could be asked"), {}
        return RemoteReport(end, out.marked, err.marked, left, offsets)
    end = seen or CommandEnd(code, timed_out=False, milliseconds=0)
    return RemoteReport(ended(end, order), out.marked, err.marked, left, offsets)


def nothing(reason: str) -> RemoteChanges:
    return RemoteChanges(unkept=f"nothing of what the command changed was kept: {reason}")


def ended(end: CommandEnd, order: CommandSpec) -> CommandEnd:
    """An end by a kill at the time that the command had is one for its time."""
    late = end.exit_code in {124, 137} and end.milliseconds >= 1000 * order.bounds.seconds
    return CommandEnd(None if late else end.exit_code, late, end.milliseconds)


async def _left(
    machine: RemoteMachine, order: CommandSpec, spool: IO[bytes]
) -> tuple[CommandEnd | None, RemoteChanges, Mapping[Path, int]]:
    """How it ended and what it left, as the machine tells it."""
    listing = BoundedOutput(LONGEST_LISTING)
    async with asyncio.timeout(_LOOKING + order.bounds.seconds):
        await machine.execute(machine.place.script(LOOK), listing, BoundedOutput(1024))
        first, _, rest = listing.whole.partition(b"\n")
        end = _end(first)
        if order.files is None:
            return end, RemoteChanges(), {}
        try:
            now = await asyncio.to_thread(listed, rest)
            left = differences(now, order.files, order.bounds)
            return end, left, await _fetched(machine, left.changed, spool)
        except (ManifestUnreadable, TransferDamaged) as problem:
            return end, nothing(str(problem)), {}


def _end(line: bytes) -> CommandEnd | None:
    code, _, took = line.partition(b" ")
    if not (code.isdigit() and took.isdigit() and len(code) <= 3 and len(took) <= 9):
        return None
    return CommandEnd(int(code), timed_out=False, milliseconds=int(took))


async def _fetched(
    machine: RemoteMachine, changed: Mapping[Path, ListedFile], spool: IO[bytes]
) -> Mapping[Path, int]:
    """Brings the bytes of changed files into the spool: where each of them begins there."""
    expected = expected_of(changed)
    if not expected:
        return {}
    await machine.put(wanted(expected.values(), machine.owner))
    poured = BoundedFile(spool, most_bytes(expected.values()))
    await machine.execute(machine.place.script(SEND), poured, BoundedOutput(1024))
    return await asyncio.to_thread(unpack_tar, spool, expected)


def expected_of(changed: Mapping[Path, ListedFile]) -> dict[Path, Expected]:
    """What has bytes to be fetched: links were told already."""
    return {
        path: Expected(seen.name, seen.size, seen.hexadecimal)
        for path, seen in changed.items()
        if seen.form is not FileKind.LINK
    }


class BoundedFile:
    """Into a file, up to a bound; whatever is more makes the whole useless, and is dropped."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._left = file, most

    def __call__(self, part: bytes) -> None:
        self._file.write(part[: self._left])
        self._left = max(0, self._left - len(part))
