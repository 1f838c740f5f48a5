"""The machine behind a stand-in: a directory, and the processes that were started for it."""

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
    """One instance, which takes its directory for another: `seen` is what it is called within.

    Its processes are known by the directory that they are in.
    """

    def __init__(self, root: File, seen: str = "/carrel") -> None:
        self.root, self.seen = root, seen
        root.mkdir(parents=True)
        self._started: list[asyncio.subprocess.Process] = []

    def at(self, path: str) -> File:
        assert path.startswith(self.seen)
        return File(self.here(path))

    def here(self, text: str) -> str:
        return text.replace(self.seen, str(self.root))

    def unpack(self, parcel: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(parcel)) as tar:
            tar.extractall(self.root, filter=_as_told)

    def translate(self) -> None:
        """Nothing is mounted here, so scripts are told where they really are."""
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


def _as_told(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    assert not member.name.startswith("/") and ".." not in member.name.split("/")
    return member.replace(uid=os.getuid(), gid=os.getgid(), uname="", gname="", deep=False)


async def told(process: asyncio.subprocess.Process) -> AsyncIterator[tuple[int, bytes]]:
    """What a process says, with 1 for its output and 2 for its errors, as it comes."""
    said: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(8)

    async def listen(number: int, reader: asyncio.StreamReader | None) -> None:
        assert reader is not None
        while part := await reader.read(CHUNK):
            await said.put((number, part))
        await said.put((number, b""))

    async with asyncio.TaskGroup() as group:
        group.create_task(listen(1, process.stdout))
        group.create_task(listen(2, process.stderr))
        silent = 0
        while silent < 2:
            number, part = await said.get()
            silent += not part
            if part:
                yield number, part
    await process.wait()
