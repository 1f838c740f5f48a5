"""Child process of a command, the server's side: starts `launcher.py`, sends its plan, waits."""

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
    """Starts the launcher script. The owner must call ``end`` in every case."""

    def __init__(self) -> None:
        self._socket, child_socket = socket.socketpair()
        self._socket.setblocking(False)
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self._status, self.status = os.pipe()
        self.filter, self.args = os.memfd_create("filter"), os.memfd_create("given")
        inherited = (child_socket.fileno(), self.status, self.filter, self.args)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _LAUNCHER, *map(str, inherited)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=inherited,
            process_group=0,
            cwd="/",
            env={},
        )
        child_socket.close()
        os.close(out)
        os.close(err)
        self._status_output = b""
        self._open_fds = {self._status, self.status, self.filter, self.args, self.out, self.err}
        self._pidfd = os.pidfd_open(self._process.pid)
        self.ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)

    def detach_fd(self, fd: int) -> int:
        """Return one of the pipes; the caller closes it from now on."""
        self._open_fds.remove(fd)
        return fd

    @property
    def pid(self) -> int:
        return self._process.pid

    def _on_exit(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.ended.set()

    async def prepare(self, plan: Mapping[str, Any]) -> int | None:
        """Send the plan; return the directory of its files, if it has its own.

        Raises SandboxUnavailable.
        """
        await self._send(marshal.dumps({**plan, "parent": os.getpid()}))
        reply, fds = await self._receive()
        if not reply.startswith(b"S"):
            raise SandboxUnavailable(f"sandbox setup failed: {reply[1:].decode() or 'no response'}")
        return fds[0] if fds else None

    async def start_command(self) -> None:
        """Let it execute the command. Raises SandboxUnavailable."""
        await self._send(b"go")
        for fd in (self.status, self.filter, self.args):
            self._close_fd(fd)
        reply, _ = await self._receive()
        if reply:
            raise SandboxUnavailable(f"sandbox setup failed: {reply[1:].decode()}")

    async def _send(self, message: bytes) -> None:
        framed = len(message).to_bytes(4, "big") + message
        with suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.get_running_loop().sock_sendall(self._socket, framed)

    async def _receive(self) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._socket, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._socket)
        try:
            message, fds, _, _ = socket.recv_fds(self._socket, 4096, 1)
        except ConnectionResetError:
            return b"", []
        return message, list(fds)

    def read_status(self) -> Mapping[str, int]:
        """Return bubblewrap's status so far: ``child-pid`` and later ``exit-code``."""
        os.set_blocking(self._status, False)
        with suppress(BlockingIOError):
            while chunk := os.read(self._status, 65536):
                self._status_output += chunk
        status: dict[str, int] = {}
        for line in self._status_output.splitlines():
            with suppress(ValueError):
                status |= json.loads(line)
        return status

    @property
    def code(self) -> int:
        code = self._process.returncode
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """Kill the process group, including a child bubblewrap has just forked."""
        if self._process.returncode is None:  # otherwise the pid may have been reused
            os.killpg(self._process.pid, signal.SIGKILL)

    def terminate(self) -> None:
        self._process.terminate()

    async def end(self) -> None:
        """Kill it, wait until it is gone and close all descriptors."""
        self.kill()
        await self.ended.wait()
        self._socket.close()
        for fd in tuple(self._open_fds):
            self._close_fd(fd)

    def _close_fd(self, fd: int) -> None:
        if fd in self._open_fds:
            self._open_fds.remove(fd)
            os.close(fd)
