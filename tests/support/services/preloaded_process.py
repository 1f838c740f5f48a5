"""Process that has Carrel loaded and forks on request; its argument is the address.

A client sends one message with program, environment, directory and standard files. It gets the
process id, and later the exit status; if it disconnects before that, the process is killed.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import marshal
import os
import selectors
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path as File
from types import ModuleType
from typing import NamedTuple

from tests.support.services.child_process import PR_SET_PDEATHSIG, Child

LONGEST = 1 << 20
LAZY_MODULES = (
    *("carrel.wiring.server", "carrel.wiring.mcp_stdio", "carrel.server.mcp"),
    *("mcp.server.stdio", "mcp.server.streamable_http_manager", "asyncpg", "httpx"),
    *(
        "carrel_client.httpx_drivers",
        "httpcore",
        "anyio._backends._asyncio",
        "certifi",
        "click._textwrap",
        "argparse",
    ),
    *(
        "carrel.server.graphql",
        "carrel.adapters.sandbox.local.ephemeral_sandbox",
        "carrel.actions.idempotency",
    ),
    *("uvicorn.lifespan.on", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl"),
)
"""Modules that programs load when they need them."""


class PreloadedProcess:
    """The process, as a server of the daemon."""

    def __init__(self, directory: File) -> None:
        self.directory = directory
        self.url = str(directory / "loaded")
        self.child = Child(directory / "loaded.log")

    async def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.services.preloaded_process", self.url]
        await self.child.start(command, File.cwd(), os.environ)
        await self.child.wait_until_ready(
            lambda: socket.socket(*KIND).connect(self.url), seconds=120
        )

    async def stop(self) -> None:
        await self.child.stop()


KIND = (socket.AF_UNIX, socket.SOCK_SEQPACKET)


class ForkRequest(NamedTuple):
    """What a new process does."""

    program: str
    arguments: list[str]
    env: dict[str, str]
    directory: str


class ForkServer:
    """Forks processes, and watches their requesters and their ends."""

    def __init__(self, address: str) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(*KIND)
        self.listener.bind(address)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.children: dict[socket.socket, tuple[int, int]] = {}
        """The process of each connection: its id, and the pidfd that signals its end."""

    def next_request(self) -> ForkRequest:
        """Return in each new process with its request, and never in this one."""
        while True:
            key, _ = self.selector.select()[0]  # handling one event may close other connections
            if key.fileobj is self.listener:
                self.selector.register(self.listener.accept()[0], selectors.EVENT_READ)
            elif isinstance(key.fileobj, int):
                self.report_exit(key.data)
            elif isinstance(key.fileobj, socket.socket):
                request = self.handle_message(key.fileobj)
                if request is not None:
                    return request

    def handle_message(self, line: socket.socket) -> ForkRequest | None:
        """Fork for a request; kill for a disconnection. Returns in the new process only."""
        try:
            message, files, _, _ = socket.recv_fds(line, LONGEST, 3)
        except ConnectionResetError:  # the requester ended before it read its process id
            message, files = b"", []
        if not message:
            self.selector.unregister(line)
            pid, ending = self.children.pop(line, (0, -1))
            if pid:
                self.kill_process(pid, ending)
            line.close()
            return None
        assert threading.active_count() == 1
        pid = os.fork()
        if pid == 0:
            self.close_inherited()
            set_up_process(files)
            command, env, directory = marshal.loads(message)
            return ForkRequest(command[0], command[1:], env, directory)
        for file in files:
            os.close(file)
        ending = os.pidfd_open(pid)
        self.children[line] = pid, ending
        self.selector.register(ending, selectors.EVENT_READ, line)
        with suppress(OSError):
            line.send(str(pid).encode())
        return None

    def kill_process(self, pid: int, ending: int) -> int:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):  # it may not have created its process group yet
            os.kill(pid, signal.SIGKILL)
        self.selector.unregister(ending)
        os.close(ending)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def report_exit(self, line: socket.socket) -> None:
        pid, ending = self.children.pop(line)
        self.selector.unregister(ending)
        os.close(ending)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(OSError):
            line.send(str(code).encode())
        self.selector.unregister(line)
        line.close()

    def close_inherited(self) -> None:
        """In a new process: close everything inherited."""
        for line, (_, ending) in self.children.items():
            line.close()
            os.close(ending)
        for key in list(self.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.selector.close()


def set_up_process(files: list[int]) -> None:
    """Create a session, set the standard files, and die with the parent."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores SIGINT
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout, sys.stderr = open_output(1, "strict"), open_output(2, "backslashreplace")


def open_output(file: int, errors: str) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(file, "w", closefd=False))
    lines = errors != "strict" or os.isatty(file)
    return io.TextIOWrapper(raw, "utf-8", errors, line_buffering=lines)


def import_modules() -> None:
    from carrel.cli import COMMANDS, module_of_command  # noqa: PLC0415 - only in the process that forks

    for name in (*LAZY_MODULES, *map(module_of_command, COMMANDS)):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def run_request(request: ForkRequest) -> None:
    """Run the requested program."""
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    os.chdir(request.directory)
    sys.argv = ["-c", *request.arguments]
    fresh = ModuleType("__main__")
    sys.modules["__main__"] = fresh
    try:
        exec(compile(request.program, "<string>", "exec"), fresh.__dict__)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        exit_process(end.code or 0)
    exit_process(0)


def exit_process(code: int) -> None:
    """End like any program, but without freeing what is loaded, since that would copy it.

    The memory is shared with the forking process while it is not written to.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(code)


if __name__ == "__main__":
    import_modules()
    run_request(ForkServer(sys.argv[1]).next_request())
