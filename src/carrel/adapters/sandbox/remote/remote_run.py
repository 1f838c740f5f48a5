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

from carrel.adapters.sandbox.remote.bounded_output import Kept
from carrel.adapters.sandbox.remote.manifest import (
    Differences,
    Seen,
    Unreadable,
    differences,
    listed,
)
from carrel.adapters.sandbox.remote.scripts import LONGEST_LISTING, LOOK, RUN, SEND, Place, scripts
from carrel.adapters.sandbox.remote.tar_transfer import (
    Damaged,
    Expected,
    Owner,
    found,
    most_bytes,
    packed,
    wanted,
)
from carrel.core.identifiers import Path
from carrel.ports.sandbox import Changed, Fetch, Form, Order, Refused

Take = Callable[[bytes], None]
LONGEST_COMMAND: Final = 96 * 1024
"""What a kernel takes as one argument is 128 KiB."""
LOST: Final = 137
"""How a command ended whose machine was gone before it could tell."""
GRACE: Final = 15.0
_LOOKING: Final = 120.0
_IN_MEMORY: Final = 4 * 2**20


class Unreachable(Exception):
    """A provider did not do what it was asked for; the message is safe to show."""


class Machine(Protocol):
    """A computer elsewhere that is ours for one command. Each method raises Unreachable."""

    place: Place
    owner: Owner

    async def put(self, parcel: bytes) -> None:
        """Unpack a tar in its root."""

    async def execute(self, words: Sequence[str], out: Take, err: Take) -> int:
        """Run a program to its end, without input. Cancelling may leave it behind."""


class RemoteRan(Struct):
    """A command that has ended elsewhere; what it changed lies in a file of ours."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    milliseconds: int
    changed: Mapping[Path, Changed]
    deleted: frozenset[Path]
    unkept: str | None
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


class End(Struct, frozen=True):
    """How a command ended."""

    exit_code: int | None
    timed_out: bool
    milliseconds: int


class Told(Struct, frozen=True):
    """All that a machine has told, before it is gone."""

    end: End
    stdout: bytes
    stderr: bytes
    left: Differences
    offsets: Mapping[Path, int]


Open = Callable[[Order], AbstractAsyncContextManager[Machine]]


@asynccontextmanager
async def course(order: Order, fetch: Fetch, opened: Open) -> AsyncIterator[RemoteRan]:
    """Run an order on a machine that is opened for it. Raises Refused where nothing was run."""
    check_order(order)
    files = order.files or {}
    contents = await fetch({placed.blob for placed in files.values()})
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        try:
            async with opened(order) as machine:
                made = scripts(order, machine.place)
                await machine.put(packed(files, contents, made, machine.owner))
                told = await _told(machine, order, spool)
        except Unreachable as problem:
            raise Refused(str(problem)) from problem
        yield ran(told, spool)


def check_order(order: Order) -> None:
    """Raises Refused for a reservation, and where a command is longer than can be passed on."""
    if order.reservation is not None:
        raise Refused("this provider keeps no instance between commands")
    size = len(order.command.encode())
    around = sum(len(name.encode()) + len(value.encode()) for name, value in order.env.items())
    if max(size, around) > LONGEST_COMMAND:
        raise Refused(
            f"a command of {size} bytes with {around} bytes of variables cannot be passed on:"
            f" {LONGEST_COMMAND} are the most; write a file and run that"
        )


def ran(told: Told, file: IO[bytes]) -> RemoteRan:
    changed = told.left.changed
    return RemoteRan(
        exit_code=told.end.exit_code,
        stdout=told.stdout,
        stderr=told.stderr,
        timed_out=told.end.timed_out,
        milliseconds=told.end.milliseconds,
        changed={path: Changed(seen.form, seen.size) for path, seen in changed.items()},
        deleted=told.left.deleted,
        unkept=told.left.unkept,
        notes=told.left.notes,
        links={path: seen.target for path, seen in changed.items() if seen.target is not None},
        offsets=told.offsets,
        file=file,
    )


async def _told(machine: Machine, order: Order, spool: IO[bytes]) -> Told:
    out, err = Kept(order.bounds.output_bytes), Kept(order.bounds.output_bytes)
    began = asyncio.get_running_loop().time()
    patience = order.bounds.seconds + GRACE
    try:
        async with asyncio.timeout(patience):
            code = await machine.execute(machine.place.script(RUN), out, err)
        seen, left, offsets = await _left(machine, order, spool)
    except (Unreachable, TimeoutError) as problem:
        took = int(1000 * (asyncio.get_running_loop().time() - began))
        is_late = isinstance(problem, TimeoutError)
        end = End(None if is_late else LOST, is_late, took)
        left, offsets = nothing("its machine was lost before it could be asked"), {}
        return Told(end, out.marked, err.marked, left, offsets)
    end = seen or End(code, timed_out=False, milliseconds=0)
    return Told(ended(end, order), out.marked, err.marked, left, offsets)


def nothing(why: str) -> Differences:
    return Differences(unkept=f"nothing of what the command changed was kept: {why}")


def ended(end: End, order: Order) -> End:
    """An end by a kill at the time that the command had is one for its time."""
    late = end.exit_code in {124, 137} and end.milliseconds >= 1000 * order.bounds.seconds
    return End(None if late else end.exit_code, late, end.milliseconds)


async def _left(
    machine: Machine, order: Order, spool: IO[bytes]
) -> tuple[End | None, Differences, Mapping[Path, int]]:
    """How it ended and what it left, as the machine tells it."""
    listing = Kept(LONGEST_LISTING)
    async with asyncio.timeout(_LOOKING + order.bounds.seconds):
        await machine.execute(machine.place.script(LOOK), listing, Kept(1024))
        first, _, rest = listing.whole.partition(b"\n")
        end = _end(first)
        if order.files is None:
            return end, Differences(), {}
        try:
            now = await asyncio.to_thread(listed, rest)
            left = differences(now, order.files, order.bounds)
            return end, left, await _fetched(machine, left.changed, spool)
        except (Unreadable, Damaged) as problem:
            return end, nothing(str(problem)), {}


def _end(line: bytes) -> End | None:
    code, _, took = line.partition(b" ")
    if not (code.isdigit() and took.isdigit() and len(code) <= 3 and len(took) <= 9):
        return None
    return End(int(code), timed_out=False, milliseconds=int(took))


async def _fetched(
    machine: Machine, changed: Mapping[Path, Seen], spool: IO[bytes]
) -> Mapping[Path, int]:
    """Brings the bytes of changed files into the spool: where each of them begins there."""
    expected = expected_of(changed)
    if not expected:
        return {}
    await machine.put(wanted(expected.values(), machine.owner))
    poured = Poured(spool, most_bytes(expected.values()))
    await machine.execute(machine.place.script(SEND), poured, Kept(1024))
    return await asyncio.to_thread(found, spool, expected)


def expected_of(changed: Mapping[Path, Seen]) -> dict[Path, Expected]:
    """What has bytes to be fetched: links were told already."""
    return {
        path: Expected(seen.name, seen.size, seen.hexadecimal)
        for path, seen in changed.items()
        if seen.form is not Form.LINK
    }


class Poured:
    """Into a file, up to a bound; whatever is more makes the whole useless, and is dropped."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._left = file, most

    def __call__(self, part: bytes) -> None:
        self._file.write(part[: self._left])
        self._left = max(0, self._left - len(part))
