"""The local provider in each isolation tier available here, and a client of it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path as File

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.command_run import IsolationTools
from carrel.adapters.sandbox.local.isolation import BUBBLEWRAP, LANDLOCK, SandboxSettings
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    FileKind,
    InputFile,
    ResourceLimits,
    Sandbox,
)

NUMBERS = count(1)
TRIED: dict[SandboxSettings, IsolationTools] = {}
UID = 100_000 + os.getpid() % 100_000
"""A user id of our own: without control groups all processes of a user are counted together."""


@asynccontextmanager
async def local(directory: File, *, wishes: SandboxSettings) -> AsyncIterator[LocalSandbox]:
    """The isolation of this machine is tested once, not for every test."""
    sandbox = LocalSandbox(directory / "sandboxes", wishes, TRIED.get(wishes))
    try:
        TRIED[wishes] = await sandbox.ready()
        assert wishes.tier == TRIED[wishes].tier, TRIED[wishes].missing_features
        yield sandbox
    finally:
        await sandbox.close()


Opens = Callable[[File], AbstractAsyncContextManager[Sandbox]]
LOCAL: dict[str, Opens] = {
    "bubblewrap-overlay": partial(local, wishes=SandboxSettings(BUBBLEWRAP, UID)),
    "bubblewrap-copy": partial(local, wishes=SandboxSettings(BUBBLEWRAP, UID, overlay=False)),
    "bubblewrap-watched": partial(local, wishes=SandboxSettings(BUBBLEWRAP, UID, cgroups=False)),
}
if os.getuid() == 0:  # only root may use it; test_local_sandbox tests the refusal
    LOCAL["landlock"] = partial(local, wishes=SandboxSettings(LANDLOCK, UID))
DISTINCT_TIERS = [name for name in LOCAL if name != "bubblewrap-copy"]
"""Tiers that differ in their isolation."""


class RecordingBlobs:
    """Bytes by digest, and the digests requested."""

    def __init__(self) -> None:
        self.bytes: dict[Digest, bytes] = {}
        self.requested: list[Digest] = []

    def add(self, content: bytes | str, form: FileKind = FileKind.FILE) -> InputFile:
        stored = content.encode() if isinstance(content, str) else content
        blob = Blob(digest(stored), len(stored))
        self.bytes[blob.digest] = stored
        return InputFile(form, blob)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        self.requested += [blob.digest for blob in blobs]
        return {blob.digest: self.bytes[blob.digest] for blob in blobs}

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        self.requested.append(blob.digest)
        content = self.bytes[blob.digest]
        for start in range(0, len(content), 2**20):
            yield content[start : start + 2**20]


class CommandRunner:
    """Runs commands in a provider."""

    def __init__(self, sandbox: Sandbox, bounds: ResourceLimits = ResourceLimits()) -> None:
        self.sandbox, self.blobs = sandbox, RecordingBlobs()
        self.bounds = bounds
        """Limits that the provider never refuses."""
        self.files: dict[Path, InputFile] = {}

    def put(self, path: str, content: bytes | str, form: FileKind = FileKind.FILE) -> None:
        self.files[Path(path)] = self.blobs.add(content, form)

    def run(
        self,
        command: str,
        bounds: ResourceLimits | None = None,
        *,
        bare: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[CommandResult]:
        files = None if bare else self.files
        order = CommandSpec(
            f"call-{next(NUMBERS)}", command, files, bounds or self.bounds, env or {}
        )
        return self.sandbox.run(order, self.blobs)

    async def output_of(self, command: str) -> str:
        """Both outputs of a command."""
        async with self.run(command) as ran:
            return (ran.stdout + ran.stderr).decode()

    async def changes_of(self, command: str) -> dict[str, bytes | None]:
        """The changes of a command, with None for deleted files."""
        async with self.run(command) as ran:
            assert ran.discard_reason is None
            deleted: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            return deleted | {path.text: await ran.content(path) for path in ran.changed}
