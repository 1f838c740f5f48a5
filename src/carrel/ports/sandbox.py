"""Sandboxes: isolated execution of commands with resource limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from carrel.core.identifiers import Path
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes
from carrel.ports.blobs import BlobReader


class FileKind(StrEnum):
    """Kind of a file on disk. Other kinds are never stored."""

    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"
    """The content is the target, which is never followed."""


class InputFile(Struct, frozen=True):
    """A file as given to a command."""

    kind: FileKind
    blob: Blob
    mode: int | None = None
    """Permission bits; None: those that are usual for its kind."""
    mtime_ns: int | None = None
    """Modification time; None: any, and a new one is no change."""

    @property
    def permissions(self) -> int:
        if self.mode is not None:
            return self.mode
        return 0o755 if self.kind is FileKind.EXECUTABLE else 0o644


class ChangedFile(Struct, frozen=True):
    """A file as left by a command."""

    kind: FileKind
    size: int
    mode: int | None = None
    """Permission bits unless they are usual for its kind."""
    mtime_ns: int | None = None
    """Modification time; None if the provider does not report it."""
    blob: Blob | None = None
    """Content, if only the kind, mode or time differs from the file that was given."""


class ResourceLimits(Struct, frozen=True):
    """Limits of a command. If one cannot be enforced, nothing runs."""

    seconds: int = 30
    output_bytes: int = 65_536
    """For stdout and stderr each; further output is discarded and marked."""
    memory_mb: int = 1024
    memory_limit_required: bool = False
    """The limit was set explicitly.

    Refuse to run unless the kernel enforces it for all processes together. Otherwise polling and
    killing suffices.
    """
    processes: int = 128
    disk_mb: int = 1024
    """For the working directory, and for /tmp and home together."""
    network: bool = False


class CommandSpec(Struct, frozen=True):
    """A command to run."""

    id: str
    """Unique; names the command's processes and directories."""
    command: str
    """Argument of `bash -c`."""
    files: Mapping[Path, InputFile] | None
    """Initial files of the working directory; None: empty, and changes are discarded."""
    limits: ResourceLimits = ResourceLimits()
    env: Mapping[str, str] = {}
    """Added to PATH, HOME, TMPDIR and LANG, which it cannot replace.

    The server's environment is hidden.
    """
    instance_key: str | None = None
    """Key of a persistent instance that outlives the command.

    Its processes, home and /tmp stay for the next command. One foreground command runs at a time.
    An instance created with other limits (except time and output), variables, options or lifetime
    is replaced.
    """
    idle_seconds: int = 900
    """An instance without commands and jobs is stopped after this time."""
    options: Mapping[str, Any] = {}
    """Provider options from the sandbox record, restricted by the operator."""
    lifetime_seconds: int | None = None
    """An instance is released after this time. None: never.

    Jobs are lost; a foreground command may finish.
    """
    write_back: WriteBack | None = None
    """Stores changed files of an instance when no command returns them."""
    directories: Mapping[Path, FileAttributes] = {}
    """Initial directories, those with files in them included."""
    root: FileAttributes = FileAttributes()
    """Mode and time of the working directory."""
    read_only: Path | None = None
    """Directory in which every command of an instance finds the given files and no others."""


class CommandResult(Protocol):
    """A finished command; its directory is readable until the context is left."""

    exit_code: int | None
    """None if it was killed for its time limit."""
    stdout: bytes
    stderr: bytes
    """Both streams are cut at the limit between characters, marker included."""
    timed_out: bool
    duration_ms: int
    changed: Mapping[Path, ChangedFile]
    """Created, modified and touched files."""
    directories: Mapping[Path, FileAttributes] | None
    """Directories that are new or have another mode or time; None if none are reported."""
    root: FileAttributes | None
    """Attributes of the working directory if it has another mode or time."""
    deleted: frozenset[Path]
    """Files and directories that were given and are gone."""
    discard_reason: str | None
    """Why all changes are discarded: there are too many.

    `changed`, `directories`, `root` and `deleted` are then empty.
    """
    notes: tuple[str, ...]
    """Messages for the caller: files that cannot be stored, and why it was killed."""

    async def content(self, path: Path) -> bytes:
        """Content of a changed file, or target of a changed link.

        Raises FileNotFoundError if it has changed since, which is possible in a persistent
        instance.
        """

    def read_parts(self, path: Path) -> Iterator[bytes]:
        """Yield the same in parts; blocks, so it is called in a thread."""


EXIT_STOPPED: Final = 143
EXIT_LOST: Final = 137


class BackgroundJob(Struct, frozen=True):
    """A background command."""

    id: str
    """Id of its CommandSpec."""
    exit_code: int | None
    """None while running; EXIT_STOPPED if stopped, EXIT_LOST with its instance."""
    log: bytes
    """Last part of its combined output."""


InspectInstance = Callable[
    [Mapping[Path, InputFile], Mapping[Path, FileAttributes], FileAttributes],
    AbstractAsyncContextManager[CommandResult],
]
"""Compares an instance with the current files, as after an empty command.

Changes that were read count as stored once the context is left without an error; others are
reported again.
"""

WriteBack = Callable[[InspectInstance, BackgroundJob | None], Awaitable[Sequence[str]]]
"""Stores the changed files of an instance.

Returns notes for the caller who polls the job. A provider calls it when a job has ended, before
that is reported, and without a job after stopping an instance, before its files are deleted. If it
raises, the changes stay for the next attempt.
"""


class SandboxUnavailable(Exception):
    """The provider cannot run this: no isolation, limit or response.

    The message is safe to show, and nothing was run.
    """


class Sandbox(Protocol):
    """A sandbox provider.

    When a command's context is left, no process, mount or directory remains, except those of a
    persistent instance.
    """

    @property
    def tier(self) -> str:
        """Isolation tier: `bubblewrap`, `landlock`, `none`, `docker` …"""

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        """Return why these settings are unsupported, or None.

        `run` may still refuse them later.
        """

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        """Run a command to its end. Raises SandboxUnavailable.

        Cancellation kills all its processes.
        """


@runtime_checkable
class CachingSandbox(Sandbox, Protocol):
    """A provider that caches files of commands on this machine."""

    async def clear_cache(self) -> None:
        """Remove the cached files; those of running commands when these end.

        Other processes of this machine remove theirs when they next run a command.
        """


@runtime_checkable
class PersistentSandbox(Sandbox, Protocol):
    """A provider with persistent instances. Others refuse an instance key."""

    async def start(self, spec: CommandSpec, blobs: BlobReader) -> None:
        """Start a background job in its instance, without a time limit.

        Return immediately. Its changes are written back when it ends, or by a foreground command
        that ends earlier. Raises SandboxUnavailable, also for more than ten jobs at a time.
        """

    async def get_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        """Return a job's state, also after a restart; None if it never existed."""

    async def stop_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        """Stop a job if it is running."""

    async def delete_job(self, instance_key: str, id: str) -> None:
        """Delete the data of a finished job. No error if it does not exist."""

    async def release_instance(self, instance_key: str) -> None:
        """Release an instance; its jobs are lost. Changed files are written back first.

        No error if it does not exist.
        """
