"""Where commands run: behind walls, in a directory of their own, within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from carrel.core.identifiers import Digest, Path
from carrel.core.store.tree import Blob


class FileKind(StrEnum):
    """What a path is on a disk. Whatever else can be there is never kept."""

    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"
    """Its content is where it points to; nothing of ours ever follows it."""


class InputFile(Struct, frozen=True):
    """One file as a command finds it."""

    form: FileKind
    blob: Blob


class ChangedFile(Struct, frozen=True):
    """One file as a command left it."""

    form: FileKind
    size: int


class ResourceLimits(Struct, frozen=True):
    """What a command may use. All are enforced; where one cannot be, nothing runs."""

    seconds: int = 30
    output_bytes: int = 65_536
    """Of stdout and of stderr, each; what comes after is drained and marked."""
    memory_mb: int = 1024
    memory_limit_required: bool = False
    """Somebody has asked for just this bound of memory: where the kernel does not keep it for all
    processes together, nothing runs. Otherwise it is enough to look and to kill.
    """
    processes: int = 128
    disk_mb: int = 1024
    """Of what it writes in its directory, and of what it has in /tmp and its home together."""
    network: bool = False


class CommandSpec(Struct, frozen=True):
    """One command to run."""

    id: str
    """Unique: what processes and directories of it are called by."""
    command: str
    """For ``bash -c``."""
    files: Mapping[Path, InputFile] | None
    """What its directory holds at first; None for an empty one that nobody looks at afterwards."""
    bounds: ResourceLimits = ResourceLimits()
    env: Mapping[str, str] = {}
    """Added to PATH, HOME, TMPDIR and LANG, which it cannot replace. Nothing of ours is seen."""
    instance_key: str | None = None
    """Names an instance that outlives the command, where the provider keeps such: its processes go
    on, and its home and /tmp are there for the next. One command at a time is run to its end in it.
    One that was made with other bounds than those of time and output, other variables, options or
    another lifetime is let go, and a new one made.
    """
    idle_seconds: int = 900
    """After how long without a command or a job an instance is stopped."""
    options: Mapping[str, Any] = {}
    """The provider's own, of the sandbox's record: they choose among what its operator allows."""
    lifetime_seconds: int | None = None
    """After how long an instance is let go, whatever goes on in it: jobs are lost then, and only a
    command that is waited for is let end. None: never.
    """
    write_back: Home | None = None
    """How what lies changed in an instance gets out of it where no command tells of it."""


Fetch = Callable[[Collection[Blob]], Awaitable[Mapping[Digest, bytes]]]
"""Gives the bytes of files, checked against their digests."""


class CommandResult(Protocol):
    """A command that has ended, whose directory can still be read until its context is left."""

    exit_code: int | None
    """None where it was killed for its time."""
    stdout: bytes
    stderr: bytes
    """Each cut at its bound, between characters; the mark of the cut is within the bound."""
    timed_out: bool
    milliseconds: int
    changed: Mapping[Path, ChangedFile]
    """Made or modified; what was only touched is not here."""
    deleted: frozenset[Path]
    discard_reason: str | None
    """Why none of what it changed may be kept: there is too much of it. Nothing is told of it then:
    ``changed`` and ``deleted`` are empty, never half of what they would be.
    """
    notes: tuple[str, ...]
    """For the caller: what could not be kept (a FIFO, a name that is no path …) and why, and what
    it was killed for, if not for its time.
    """

    async def content(self, path: Path) -> bytes:
        """The bytes of a changed file, or where a changed link points to.

        Raises FileNotFoundError where it is that no more, which it can be in an instance that is
        kept: whatever goes on there may have changed it since.
        """


EXIT_STOPPED: Final = 143
EXIT_LOST: Final = 137


class BackgroundJob(Struct, frozen=True):
    """A command that nobody waits for."""

    id: str
    """Of its order."""
    exit_code: int | None
    """None while it runs; STOPPED where it was, LOST where it was lost with its instance."""
    log: bytes
    """The last of what it has printed so far, of both streams as it came."""


Look = Callable[[Mapping[Path, InputFile]], AbstractAsyncContextManager[CommandResult]]
"""Tells what lies changed in an instance beside files as they are now, like the end of a command
that did nothing. What was read of it counts as brought back once the context is left without an
error; what was not is told again.
"""

Home = Callable[[Look, BackgroundJob | None], Awaitable[Sequence[str]]]
"""Brings back what lies changed in an instance; gives what whoever asks for the job should know.

A provider calls the one of a job's order when that job has ended, and before anybody is told so; it
calls the one of the last order, without a job, when it has stopped an instance, before its files
are gone. What it raises is no error: all stays as it is, for the next who looks.
"""


class SandboxUnavailable(Exception):
    """A provider cannot run this: no isolation here, a bound that it cannot enforce, no answer.

    The message is safe to show, and nothing was run.
    """


class Sandbox(Protocol):
    """One provider of isolation. Nothing of a command is left when its context is left, unless a
    reservation keeps it: no process, no mount, no directory.
    """

    @property
    def tier(self) -> str:
        """What isolates here, for people: ``bubblewrap``, ``landlock``, ``none``, ``docker`` …"""

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        """Why a setting cannot be kept here, or None; as far as is known before anything has run,
        so ``run`` may still refuse it.
        """

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        """Run it to its end. Raises Refused. Cancelling kills all that it started."""


@runtime_checkable
class PersistentSandbox(Sandbox, Protocol):
    """A provider that keeps instances between commands. Others refuse a reservation."""

    async def start(self, order: CommandSpec, fetch: Fetch) -> None:
        """Begin a command in its reservation, and do not wait: it has no bound of time. What it
        changes goes home when it ends, or is told by a command that ends there before. Raises
        Refused, also beyond ten at a time.
        """

    async def job(self, reservation: str, id: str) -> BackgroundJob | None:
        """How a job is doing, or None where there never was such; also after a restart."""

    async def stop(self, reservation: str, id: str) -> BackgroundJob | None:
        """End a job, if it has not ended."""

    async def delete_job(self, reservation: str, id: str) -> None:
        """Let go of what is known of a job that has ended. It need not be there."""

    async def release(self, reservation: str) -> None:
        """Let go of an instance and of all that is known of its jobs, which are lost. What lies
        changed there goes home first. It need not be there.
        """
