"""Puts Carrel's memory tool in the place of the SDK's, which keeps memories on a disk.

The tests look at the directory of the tool and put files there, past the tool. So the directory is
a mirror: its files are written to the server before each command, and read from it after.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anthropic.lib.tools._beta_builtin_memory_tool as upstream
import anyio

from carrel_client import AsyncClient, Client
from carrel_client.anthropic import AsyncCarrelMemoryTool, CarrelMemoryTool

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
DIRECTORY = "memory"


class Mirror:
    """A directory that shows the memories of one workspace."""

    def __init__(self, base_path: str) -> None:
        self.root = Path(base_path) / "memories"
        client = Client(URL, TOKEN)
        self.workspace = client.workspaces.create("memory").id
        self.files = client.workspace(self.workspace)

    def push(self) -> None:
        stored = self._stored()
        local = {
            f"{DIRECTORY}/{file.relative_to(self.root).as_posix()}": file.read_bytes()
            for file in sorted(self.root.rglob("*"))
            if file.is_file() and not file.is_symlink()
        }
        for path in stored.keys() - local.keys():
            self.files.delete(path)
        for path, content in local.items():
            if stored.get(path) != content:
                self.files.put(path, content.decode())

    def pull(self) -> None:
        stored = self._stored()
        files = {self.root / path.removeprefix(f"{DIRECTORY}/"): stored[path] for path in stored}
        for file in [file for file in self.root.rglob("*") if file.is_file()]:
            if file not in files:
                file.unlink()
        for file, content in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def _stored(self) -> Mapping[str, bytes]:
        return {row.path: self.files.read_bytes(row.path) for row in self.files.list(DIRECTORY)}


class MirroredMemoryTool(CarrelMemoryTool):
    """Carrel's tool with the directory that the tests expect."""

    def __init__(self, base_path: str = "./memory") -> None:
        self._mirror = Mirror(base_path)
        super().__init__(self._mirror.files, DIRECTORY)
        self.base_path, self.memory_root = Path(base_path), self._mirror.root
        self.memory_root.mkdir(parents=True, exist_ok=True)

    def _run(self, command: Any) -> str:
        self._mirror.push()
        try:
            return super()._run(command)
        finally:
            self._mirror.pull()


class AsyncMirroredMemoryTool(AsyncCarrelMemoryTool):
    """Like MirroredMemoryTool, awaited."""

    def __init__(self, base_path: str = "./memory") -> None:
        self._mirror = Mirror(base_path)
        super().__init__(AsyncClient(URL, TOKEN).workspace(self._mirror.workspace), DIRECTORY)
        self.base_path, self.memory_root = Path(base_path), anyio.Path(self._mirror.root)
        self._mirror.root.mkdir(parents=True, exist_ok=True)

    async def _run(self, command: Any) -> str:
        self._mirror.push()
        try:
            return await super()._run(command)
        finally:
            self._mirror.pull()


vars(upstream).update(
    BetaLocalFilesystemMemoryTool=MirroredMemoryTool,
    BetaAsyncLocalFilesystemMemoryTool=AsyncMirroredMemoryTool,
)
