"""File tools among many files, and sandbox overhead over bare bubblewrap."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path as File
from time import perf_counter
from typing import Any, Final

import carrel
from bench.report import Results
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.isolation import SandboxSettings, bubblewrap_program
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import CommandSpec, FileKind, InputFile

FILES, TIMES, PAUSE_SECONDS = 200, 12, 0.15
OVERHEAD_LABEL = f"`true` in {FILES} files, over bare bubblewrap"
_BWRAP_ARGUMENTS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"),
    *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
)


async def measure(folder: File, results: Results) -> None:
    """Time a sandboxed command and bare bubblewrap in turn, with pauses."""
    contents = [f"file {number}\n".encode() * 100 for number in range(FILES)]
    bytes_of = {digest(content): content for content in contents}
    files = {
        Path(f"folder-{n % 20}/file-{n}.md"): InputFile(
            FileKind.FILE, Blob(digest(content), len(content))
        )
        for n, content in enumerate(contents)
    }

    blobs = _Contents(bytes_of)
    sandbox = LocalSandbox(folder / "sandboxes")
    try:
        assert (await sandbox.ready()).tier == "bubblewrap"
        for number in range(TIMES + 1):
            await asyncio.sleep(PAUSE_SECONDS)
            began = perf_counter()
            async with sandbox.run(CommandSpec(f"call-{number}", "true", files), blobs) as ran:
                assert ran.exit_code == 0
            took = perf_counter() - began
            bare = await asyncio.to_thread(_bare)
            if number:  # the first iteration materializes the files
                results.record(OVERHEAD_LABEL, took - bare)
    finally:
        await sandbox.close()


class _Contents:
    """BlobReader of contents in memory."""

    def __init__(self, contents: Mapping[Digest, bytes]) -> None:
        self._contents = contents

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        return {blob.digest: self._contents[blob.digest] for blob in blobs}

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        yield self._contents[blob.digest]


def _bare() -> float:
    began = perf_counter()
    subprocess.run(
        [bubblewrap_program(SandboxSettings()), *_BWRAP_ARGUMENTS, "bash", "-c", "true"], check=True
    )
    return perf_counter() - began


TOOLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "read": {"file_path": "folder-3/file-43.md"},
    "write": {"file_path": "folder-3/new.md", "content": "new\n" * 100},
    "edit": {"file_path": "folder-5/file-65.md", "old_string": "file", "new_string": "file"},
    "glob": {"pattern": "**/file-1*.md"},
    "grep": {"pattern": "line 7[0-9]$", "output_mode": "content", "line_numbers": True},
}
"""Arguments of each tool, in a workspace of 200 files of 5 KB."""


def tool_label(name: str) -> str:
    return f"`{name}` among {FILES} files"


async def file_tools(folder: File, results: Results) -> None:
    """Time file tools in this process, on a separate store."""
    async with carrel.open(folder / "store") as client:
        sandbox = await client.sandboxes.create("box", config={"permissionMode": "bypass"})
        shared = await client.workspaces.create("notes")
        attached = {"name": "notes", "workspaceId": shared.id}
        config = {"sandbox": sandbox.id, "workspaces": [attached]}
        await client.agents.create("kate", "Kate", config=config)
        files = client.workspace(shared.id)
        for number in range(FILES):
            lines = "".join(f"file {number}, line {line}, and so on\n" for line in range(170))
            await files.put(f"folder-{number % 20}/file-{number}.md", lines)
        tools = client.agent("kate").tools
        for number in range(TIMES + 1):
            for name, arguments in TOOLS.items():
                began = perf_counter()
                result = await tools.call(name, _vary_arguments(name, arguments, number))
                took = perf_counter() - began
                assert not result.is_error, result.content
                if number:
                    results.record(tool_label(name), took)


def _vary_arguments(name: str, arguments: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Change the arguments so that every write and edit changes the file."""
    if name == "edit":
        old_line, new_line = f"line {number}, and", f"line {number}, but"
        return {**arguments, "old_string": old_line, "new_string": new_line}
    return {**arguments, "content": f"{number}"} if name == "write" else arguments
