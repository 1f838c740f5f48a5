"""Runs one command on a remote machine: send files, run, fetch changes.

The machine is removed before the caller gets the result.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import IO, Final, Protocol

from msgspec import Struct

from carrel.adapters.sandbox.remote.bounded_output import BoundedOutput
from carrel.adapters.sandbox.remote.manifest import (
    InvalidManifest,
    ListedFile,
    RemoteChanges,
    find_changes,
    parse_manifest,
)
from carrel.adapters.sandbox.remote.scripts import (
    INSPECT,
    MAX_LISTING_BYTES,
    RUN,
    SEND,
    RemotePaths,
    build_scripts,
)
from carrel.adapters.sandbox.remote.tar_transfer import (
    ExpectedFile,
    Owner,
    TransferDamaged,
    max_archive_bytes,
    pack_file_list,
    pack_tar,
    unpack_tar,
)
from carrel.core.identifiers import Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.blobs import PART_BYTES, BlobReader
from carrel.ports.sandbox import (
    ChangedFile,
    CommandSpec,
    FileKind,
    SandboxUnavailable,
)

OutputSink = Callable[[bytes], None]
MAX_COMMAND_BYTES: Final = 96 * 1024
"""Below the kernel's limit of 128 KiB per argument."""
EXIT_MACHINE_LOST: Final = 137
"""Exit code when the machine was lost before the command's exit code was read."""
GRACE_SECONDS: Final = 15.0
_COLLECT_SECONDS: Final = 120.0
_MAX_MEMORY_BYTES: Final = 4 * 2**20


class ProviderUnreachable(Exception):
    """A request to the provider failed; the message is safe to show."""


class RemoteMachine(Protocol):
    """Machine reserved for one command. Every method raises ProviderUnreachable."""

    paths: RemotePaths
    owner: Owner

    async def put(self, archive: bytes) -> None:
        """Unpack a tar archive in the root directory."""

    async def execute(self, arguments: Sequence[str], out: OutputSink, err: OutputSink) -> int:
        """Run a program without input and return its exit code.

        Cancelling may leave it running.
        """


class RemoteResult(Struct):
    """CommandResult whose changed files are in a local temporary file."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    duration_ms: int
    changed: Mapping[Path, ChangedFile]
    directories: Mapping[Path, FileAttributes] | None
    root: FileAttributes | None
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

    def read_parts(self, path: Path) -> Iterator[bytes]:
        if path in self.links:
            yield self.links[path]
            return
        position, end = self.offsets[path], self.offsets[path] + self.changed[path].size
        while part := self._read(position, min(PART_BYTES, end - position)):
            position += len(part)
            yield part


class CommandEnd(Struct, frozen=True):
    """Exit code, timeout flag and duration of a command."""

    exit_code: int | None
    timed_out: bool
    milliseconds: int


class RemoteReport(Struct, frozen=True):
    """Everything read from the machine before it is removed."""

    end: CommandEnd
    stdout: bytes
    stderr: bytes
    changes: RemoteChanges
    offsets: Mapping[Path, int]


OpenMachine = Callable[[CommandSpec], AbstractAsyncContextManager[RemoteMachine]]


@asynccontextmanager
async def run_remotely(
    spec: CommandSpec, blobs: BlobReader, open_machine: OpenMachine
) -> AsyncIterator[RemoteResult]:
    """Run a command on a new machine. Raises SandboxUnavailable if nothing was run."""
    check_spec(spec)
    files = spec.files or {}
    contents = await blobs.get({file.blob for file in files.values()})
    with tempfile.SpooledTemporaryFile(max_size=_MAX_MEMORY_BYTES) as spool:
        try:
            async with open_machine(spec) as machine:
                script_files = build_scripts(spec, machine.paths)
                await machine.put(
                    pack_tar(files, contents, script_files, machine.owner, spec.directories)
                )
                report = await _run_on_machine(machine, spec, spool)
        except ProviderUnreachable as problem:
            raise SandboxUnavailable(str(problem)) from problem
        yield result_of(report, spool)


def check_spec(spec: CommandSpec) -> None:
    """Raise SandboxUnavailable for a persistent sandbox or a too long command."""
    if spec.instance_key is not None:
        raise SandboxUnavailable("this provider does not support persistent sandboxes")
    size = len(spec.command.encode())
    env_size = sum(len(name.encode()) + len(value.encode()) for name, value in spec.env.items())
    if max(size, env_size) > MAX_COMMAND_BYTES:
        raise SandboxUnavailable(
            f"a command of {size} bytes and {env_size} bytes of variables are too long:"
            f" {MAX_COMMAND_BYTES} bytes at most; write a script file and run it"
        )


def result_of(report: RemoteReport, file: IO[bytes]) -> RemoteResult:
    changed = report.changes.changed
    return RemoteResult(
        exit_code=report.end.exit_code,
        stdout=report.stdout,
        stderr=report.stderr,
        timed_out=report.end.timed_out,
        duration_ms=report.end.milliseconds,
        changed={
            path: ChangedFile(listed_file.kind, listed_file.size)
            for path, listed_file in changed.items()
        },
        directories=None,
        root=None,
        deleted=report.changes.deleted,
        discard_reason=report.changes.discard_reason,
        notes=report.changes.notes,
        links={
            path: listed_file.target
            for path, listed_file in changed.items()
            if listed_file.target is not None
        },
        offsets=report.offsets,
        file=file,
    )


async def _run_on_machine(
    machine: RemoteMachine, spec: CommandSpec, spool: IO[bytes]
) -> RemoteReport:
    out, err = BoundedOutput(spec.limits.output_bytes), BoundedOutput(spec.limits.output_bytes)
    started = asyncio.get_running_loop().time()
    timeout = spec.limits.seconds + GRACE_SECONDS
    try:
        async with asyncio.timeout(timeout):
            code = await machine.execute(machine.paths.script(RUN), out, err)
        observed_end, changes, offsets = await _collect_changes(machine, spec, spool)
    except (ProviderUnreachable, TimeoutError) as problem:
        elapsed_ms = int(1000 * (asyncio.get_running_loop().time() - started))
        is_timeout = isinstance(problem, TimeoutError)
        end = CommandEnd(None if is_timeout else EXIT_MACHINE_LOST, is_timeout, elapsed_ms)
        changes, offsets = discard_changes("the machine was lost"), {}
        return RemoteReport(end, out.marked_content, err.marked_content, changes, offsets)
    end = observed_end or CommandEnd(code, timed_out=False, milliseconds=0)
    return RemoteReport(
        with_timeout_detected(end, spec), out.marked_content, err.marked_content, changes, offsets
    )


def discard_changes(reason: str) -> RemoteChanges:
    return RemoteChanges(discard_reason=f"no changes were kept: {reason}")


def with_timeout_detected(end: CommandEnd, spec: CommandSpec) -> CommandEnd:
    """Mark the end as a timeout if the command was killed at its time limit."""
    late = end.exit_code in {124, 137} and end.milliseconds >= 1000 * spec.limits.seconds
    return CommandEnd(None if late else end.exit_code, late, end.milliseconds)


async def _collect_changes(
    machine: RemoteMachine, spec: CommandSpec, spool: IO[bytes]
) -> tuple[CommandEnd | None, RemoteChanges, Mapping[Path, int]]:
    """Read how the command ended and fetch the files it changed."""
    listing = BoundedOutput(MAX_LISTING_BYTES)
    async with asyncio.timeout(_COLLECT_SECONDS + spec.limits.seconds):
        await machine.execute(machine.paths.script(INSPECT), listing, BoundedOutput(1024))
        first, _, raw_manifest = listing.content.partition(b"\n")
        end = _parse_end(first)
        if spec.files is None:
            return end, RemoteChanges(), {}
        try:
            manifest = await asyncio.to_thread(parse_manifest, raw_manifest)
            changes = find_changes(manifest, spec.files, spec.limits)
            return end, changes, await _fetch_changed(machine, changes.changed, spool)
        except (InvalidManifest, TransferDamaged) as problem:
            return end, discard_changes(str(problem)), {}


def _parse_end(line: bytes) -> CommandEnd | None:
    code, _, elapsed_ms = line.partition(b" ")
    if not (code.isdigit() and elapsed_ms.isdigit() and len(code) <= 3 and len(elapsed_ms) <= 9):
        return None
    return CommandEnd(int(code), timed_out=False, milliseconds=int(elapsed_ms))


async def _fetch_changed(
    machine: RemoteMachine, changed: Mapping[Path, ListedFile], spool: IO[bytes]
) -> Mapping[Path, int]:
    """Fetch changed files into the spool; return each file's offset there."""
    expected = expected_files(changed)
    if not expected:
        return {}
    await machine.put(pack_file_list(expected.values(), machine.owner))
    sink = BoundedFile(spool, max_archive_bytes(expected.values()))
    await machine.execute(machine.paths.script(SEND), sink, BoundedOutput(1024))
    return await asyncio.to_thread(unpack_tar, spool, expected)


def expected_files(changed: Mapping[Path, ListedFile]) -> dict[Path, ExpectedFile]:
    """Changed files whose bytes must be fetched; link targets are in the manifest."""
    return {
        path: ExpectedFile(listed_file.name, listed_file.size, listed_file.sha256)
        for path, listed_file in changed.items()
        if listed_file.kind is not FileKind.LINK
    }


class BoundedFile:
    """Output sink into a file. Bytes beyond the limit are dropped."""

    def __init__(self, file: IO[bytes], max_bytes: int) -> None:
        self._file, self._remaining = file, max_bytes

    def __call__(self, part: bytes) -> None:
        self._file.write(part[: self._remaining])
        self._remaining = max(0, self._remaining - len(part))
