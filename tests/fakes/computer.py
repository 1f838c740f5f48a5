"""The machine behind a fake service: a directory, and the processes started for it."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as File

CHUNK = 65_536
SCRIPTS = {"run", "look", "send"}


class Computer:
    """One instance. ``mount_path`` is the directory's path as seen inside.

    Its processes are recognized by their working directory.
    """

    def __init__(self, root: File, mount_path: str = "/carrel") -> None:
        self.root, self.mount_path = root, mount_path
        root.mkdir(parents=True)
        self._started: list[asyncio.subprocess.Process] = []

    def at(self, path: str) -> File:
        assert path.startswith(self.mount_path)
        return File(self.here(path))

    def here(self, text: str) -> str:
        return text.replace(self.mount_path, str(self.root))

    def unpack(self, archive: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(self.root, filter=_extract_as_is)

    def translate(self) -> None:
        """Rewrite paths in scripts, since nothing is mounted here."""
        for script in self.root.iterdir():
            if script.name in SCRIPTS:
                text = script.read_text("utf-8")
                script.chmod(0o755)
                if str(self.root) not in text:
                    script.write_text(self.here(text), "utf-8")

    async def start(
        self, words: Sequence[str], *, stdin: bool = False, env: Mapping[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        self.translate()
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *map(self.here, words),
            stdin=pipe if stdin else asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=self.root,
            env={"PATH": os.environ["PATH"], "OF_THE_IMAGE": "seen", **(env or {})},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def destroy(self) -> None:
        for process in self._started:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def processes(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and self._has(name)]

    def _has(self, process: str) -> bool:
        with suppress(OSError):
            return f"{os.readlink(f'/proc/{process}/cwd')}/".startswith(f"{self.root}/")
        return False


def _extract_as_is(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    assert not member.name.startswith("/") and ".." not in member.name.split("/")
    return member.replace(uid=os.getuid(), gid=os.getgid(), uname="", gname="", deep=False)


async def output_of(process: asyncio.subprocess.Process) -> AsyncIterator[tuple[int, bytes]]:
    """The output of a process in order, as (1, bytes) for stdout and (2, bytes) for stderr."""
    chunks: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(8)

    async def read_all(number: int, reader: asyncio.StreamReader | None) -> None:
        assert reader is not None
        while part := await reader.read(CHUNK):
            await chunks.put((number, part))
        await chunks.put((number, b""))

    async with asyncio.TaskGroup() as group:
        group.create_task(read_all(1, process.stdout))
        group.create_task(read_all(2, process.stderr))
        silent = 0
        while silent < 2:
            number, part = await chunks.get()
            silent += not part
            if part:
                yield number, part
    await process.wait()
