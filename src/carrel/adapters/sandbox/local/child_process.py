"""A process that is about to become a command, and what there is of it until it has ended."""

from __future__ import annotations

import asyncio
import json
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, Final

from carrel.ports.sandbox import SandboxUnavailable

_LAUNCHER: Final = str(File(__file__).with_name("launcher.py"))


class ChildProcess:
    """From its start to its end. Whoever holds one calls ``end``, whatever happens."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self._status, self.status = os.pipe()
        self.filter, self.given = os.memfd_create("filter"), os.memfd_create("given")
        passed = (theirs.fileno(), self.status, self.filter, self.given)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _LAUNCHER, *map(str, passed)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=passed,
            process_group=0,
            cwd="/",
            env={},
        )
        theirs.close()
        os.close(out)
        os.close(err)
        self._told = b""
        self._open = {self._status, self.status, self.filter, self.given, self.out, self.err}
        self._pidfd = os.pidfd_open(self._process.pid)
        self.ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pidfd, self._at_end)

    def handed(self, fd: int) -> int:
        """One of its pipes, for somebody else to close."""
        self._open.remove(fd)
        return fd

    @property
    def pid(self) -> int:
        return self._process.pid

    def _at_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.ended.set()

    async def prepare(self, plan: Mapping[str, Any]) -> int | None:
        """Tell it what to do; gives the directory of its files, if it has one of its own."""
        await self._send(marshal.dumps({**plan, "parent": os.getpid()}))
        said, fds = await self._heard()
        if not said.startswith(b"S"):
            raise SandboxUnavailable(
                f"the sandbox could not be set up: {said[1:].decode() or 'no answer'}"
            )
        return fds[0] if fds else None

    async def go(self) -> None:
        """Let it become the command. Raises Refused where it could not."""
        await self._send(b"go")
        for fd in (self.status, self.filter, self.given):
            self._shut(fd)
        said, _ = await self._heard()
        if said:
            raise SandboxUnavailable(f"the sandbox could not be set up: {said[1:].decode()}")

    async def _send(self, message: bytes) -> None:
        framed = len(message).to_bytes(4, "big") + message
        with suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.get_running_loop().sock_sendall(self._ours, framed)

    async def _heard(self) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._ours, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._ours)
        try:
            said, fds, _, _ = socket.recv_fds(self._ours, 4096, 1)
        except ConnectionResetError:
            return b"", []
        return said, list(fds)

    def reported(self) -> Mapping[str, int]:
        """What bubblewrap has said so far: ``child-pid`` and, once it is over, ``exit-code``."""
        os.set_blocking(self._status, False)
        with suppress(BlockingIOError):
            while piece := os.read(self._status, 65536):
                self._told += piece
        said: dict[str, int] = {}
        for line in self._told.splitlines():
            with suppress(ValueError):
                said |= json.loads(line)
        return said

    @property
    def code(self) -> int:
        code = self._process.returncode
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """With it one that it has just made: bubblewrap's waits for a word of it, for ever."""
        if self._process.returncode is None:  # else its number may be somebody else's by now
            os.killpg(self._process.pid, signal.SIGKILL)

    def terminate(self) -> None:
        self._process.terminate()

    async def end(self) -> None:
        """Kill what is left of it, wait until that is gone, and close all that was open."""
        self.kill()
        await self.ended.wait()
        self._ours.close()
        for fd in tuple(self._open):
            self._shut(fd)

    def _shut(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)
