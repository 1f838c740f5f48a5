"""A provider for tests only: a directory, a shell, and no isolation.

It implements the sandbox port except isolation, so that its users can be tested on any machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path as File

from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import truncate_output
from carrel.core.store.entry import FileAttributes
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    BackgroundJob,
    ChangedFile,
    CommandResult,
    CommandSpec,
    FileKind,
    ResourceLimits,
    SandboxUnavailable,
)


@dataclass
class CommandOutcome:
    """Result of a command."""

    contents: Mapping[Path, tuple[FileKind, bytes]] = field(default_factory=dict)
    deleted: frozenset[Path] = frozenset()
    directories: Mapping[Path, FileAttributes] | None = None
    root: FileAttributes | None = None
    exit_code: int | None = 0
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    duration_ms: int = 1
    discard_reason: str | None = None
    notes: tuple[str, ...] = ()
    changed: Mapping[Path, ChangedFile] = field(init=False)

    def __post_init__(self) -> None:
        self.changed = {
            path: ChangedFile(form, len(body)) for path, (form, body) in self.contents.items()
        }

    async def content(self, path: Path) -> bytes:
        return self.contents[path][1]

    def read_parts(self, path: Path) -> Iterator[bytes]:
        body = self.contents[path][1]
        yield from (body[start : start + 10_000] for start in range(0, len(body), 10_000))


class UnsandboxedProvider:
    def __init__(self, refusal: str | None = None) -> None:
        self.refusal, self.is_persistent = refusal, False
        self.orders: list[CommandSpec] = []

    @property
    def tier(self) -> str:
        return "none, for tests"

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if persistent and not self.is_persistent:
            return "nothing is kept here"
        return "no network here" if limits.network else None

    @asynccontextmanager
    async def run(self, spec: CommandSpec, blobs: BlobReader) -> AsyncIterator[CommandResult]:
        if self.refusal:
            raise SandboxUnavailable(self.refusal)
        self.orders.append(spec)
        root = File(tempfile.mkdtemp(prefix="plain-runner-"))
        try:
            placed = spec.files or {}
            bytes_of = await blobs.get([file.blob for file in placed.values()]) if placed else {}
            before = {
                path: (file.kind, bytes_of[file.blob.digest]) for path, file in placed.items()
            }
            write_files(root, before)
            result = await run_in(root, spec)
            after = read_changes(root)
            changed = {path: entry for path, entry in after.items() if before.get(path) != entry}
            yield replace(result, contents=changed, deleted=frozenset(before) - frozenset(after))
        finally:
            shutil.rmtree(root)


async def run_in(root: File, order: CommandSpec) -> CommandOutcome:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        order.command,
        cwd=root,
        env={"PATH": os.environ["PATH"], **order.env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    talk = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([talk], timeout=order.limits.seconds)
    if not done:
        process.kill()
    stdout, stderr = await talk
    limit = order.limits.output_bytes
    return CommandOutcome(
        exit_code=process.returncode if done else None,
        stdout=truncate_output(stdout, limit).encode(),
        stderr=truncate_output(stderr, limit).encode(),
        timed_out=not done,
    )


def write_files(root: File, files: Mapping[Path, tuple[FileKind, bytes]]) -> None:
    for path, (form, content) in files.items():
        place = root / path.text
        place.parent.mkdir(parents=True, exist_ok=True)
        if form is FileKind.LINK:
            place.symlink_to(content.decode())
        else:
            place.write_bytes(content)
            place.chmod(0o755 if form is FileKind.EXECUTABLE else 0o644)


def read_changes(root: File) -> dict[Path, tuple[FileKind, bytes]]:
    files: dict[Path, tuple[FileKind, bytes]] = {}
    for place in sorted(root.rglob("*")):
        path = Path(str(place.relative_to(root)))
        if place.is_symlink():
            files[path] = (FileKind.LINK, os.readlink(place).encode())
        elif place.is_file():
            form = FileKind.EXECUTABLE if place.stat().st_mode & 0o100 else FileKind.FILE
            files[path] = (form, place.read_bytes())
    return files


class PersistentUnsandboxedProvider(UnsandboxedProvider):
    """A provider whose commands may continue, each in its own directory."""

    def __init__(self) -> None:
        super().__init__()
        self.is_persistent = True
        self.processes: dict[tuple[str, str], asyncio.subprocess.Process] = {}
        self.logs: dict[str, File] = {}

    async def start(self, spec: CommandSpec, blobs: BlobReader) -> None:
        if self.refusal:
            raise SandboxUnavailable(self.refusal)
        assert spec.instance_key
        self.logs[spec.id] = File(tempfile.mkstemp(prefix="plain-runner-")[1])
        with self.logs[spec.id].open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                "bash",
                "-c",
                spec.command,
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
            )
        self.processes[spec.instance_key, spec.id] = process

    async def get_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        process = self.processes.get((instance_key, id))
        if process is None:
            return None
        return BackgroundJob(id, process.returncode, self.logs[id].read_bytes())

    async def stop_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        process = self.processes.get((instance_key, id))
        if process is not None and process.returncode is None:
            process.terminate()
            await process.wait()
            return BackgroundJob(id, 143, self.logs[id].read_bytes())
        return await self.get_job(instance_key, id)

    async def delete_job(self, instance_key: str, id: str) -> None:
        self.processes.pop((instance_key, id), None)

    async def release_instance(self, instance_key: str) -> None:
        for key in [key for key in self.processes if key[0] == instance_key]:
            del self.processes[key]

    async def close(self) -> None:
        for instance_key, id in self.processes:
            await self.stop_job(instance_key, id)
            self.logs[id].unlink()
