"""Process that has Carrel loaded and forks on request; its argument is the address.

Whoever connects says, in one message, what to run, and with which environment, directory and
standard files. They are told the number of the process, and later how it ended; if they go before
that, it is killed.
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
from keyword import iskeyword
from pathlib import Path as File
from types import ModuleType
from typing import NamedTuple

from tests.support.services.child_process import PR_SET_PDEATHSIG, Child

LONGEST = 1 << 20
LATE = (
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
        "carrel.adapters.sandbox.local.local_sandbox",
        "carrel.actions.idempotency",
    ),
    *("uvicorn.lifespan.on", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl"),
)
"""What is loaded by programs once they need it."""


class Loaded:
    """The process, as a server that the keeper has."""

    def __init__(self, directory: File) -> None:
        self.directory = directory
        self.url = str(directory / "loaded")
        self.child = Child(directory / "loaded.log")

    async def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.services.preloaded_process", self.url]
        await self.child.start(command, File.cwd(), os.environ)
        await self.child.answers(lambda: socket.socket(*KIND).connect(self.url), seconds=120)

    async def stop(self) -> None:
        await self.child.stop()


KIND = (socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Asked(NamedTuple):
    """What a new process is to do."""

    program: str
    arguments: list[str]
    env: dict[str, str]
    directory: str


class Nursery:
    """Forks, and watches those who asked and those who were born."""

    def __init__(self, address: str) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(*KIND)
        self.listener.bind(address)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.born: dict[socket.socket, tuple[int, int]] = {}
        """The process of each that asked: its number, and the file that tells its end."""

    def next(self) -> Asked:
        """Return in each new process with what it has to do, and never in this one."""
        while True:
            key, _ = self.selector.select()[0]  # what is done for one may end the others
            if key.fileobj is self.listener:
                self.selector.register(self.listener.accept()[0], selectors.EVENT_READ)
            elif isinstance(key.fileobj, int):
                self.tell_end(key.data)
            elif isinstance(key.fileobj, socket.socket):
                asked = self.heard(key.fileobj)
                if asked is not None:
                    return asked

    def heard(self, line: socket.socket) -> Asked | None:
        """Fork for whoever asks; kill for whoever goes. Returns in the new process alone."""
        message, files, _, _ = socket.recv_fds(line, LONGEST, 3)
        if not message:
            self.selector.unregister(line)
            pid, ending = self.born.pop(line, (0, -1))
            if pid:
                self.bury(pid, ending)
            line.close()
            return None
        assert threading.active_count() == 1
        pid = os.fork()
        if pid == 0:
            self.let_go()
            furnish(files)
            command, env, directory = marshal.loads(message)
            return Asked(command[0], command[1:], env, directory)
        for file in files:
            os.close(file)
        ending = os.pidfd_open(pid)
        self.born[line] = pid, ending
        self.selector.register(ending, selectors.EVENT_READ, line)
        with suppress(OSError):
            line.send(str(pid).encode())
        return None

    def bury(self, pid: int, ending: int) -> int:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):  # it may not have got as far as a group of its own
            os.kill(pid, signal.SIGKILL)
        self.selector.unregister(ending)
        os.close(ending)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def tell_end(self, line: socket.socket) -> None:
        pid, ending = self.born.pop(line)
        self.selector.unregister(ending)
        os.close(ending)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(OSError):
            line.send(str(code).encode())
        self.selector.unregister(line)
        line.close()

    def let_go(self) -> None:
        """In a new process: nothing of this one's is open any more."""
        for line, (_, ending) in self.born.items():
            line.close()
            os.close(ending)
        for key in list(self.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.selector.close()


def furnish(files: list[int]) -> None:
    """A session of its own, these standard files, and an end when the parent comes to its own."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who has us in the background ignores
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout, sys.stderr = written(1, "strict"), written(2, "backslashreplace")


def written(file: int, errors: str) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(file, "w", closefd=False))
    lines = errors != "strict" or os.isatty(file)
    return io.TextIOWrapper(raw, "utf-8", errors, line_buffering=lines)


def load() -> None:
    from carrel.cli import COMMANDS  # noqa: PLC0415 - only where it is to be forked

    commands = (f"carrel.cli.commands.{name}{'_' * iskeyword(name)}" for name in COMMANDS)
    for name in (*LATE, *commands):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def begin(asked: Asked) -> None:
    """Be what was asked for."""
    os.environ.clear()
    os.environ.update(asked.env)
    time.tzset()
    os.chdir(asked.directory)
    sys.argv = ["-c", *asked.arguments]
    fresh = ModuleType("__main__")
    sys.modules["__main__"] = fresh
    try:
        exec(compile(asked.program, "<string>", "exec"), fresh.__dict__)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        leave(end.code or 0)
    leave(0)


def leave(code: int) -> None:
    """End as any program does, but for the clearing away of all that is loaded: that would copy it.

    It is shared with the process that forked this one as long as nobody touches it.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # the threads come to their end
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    begin(Nursery(sys.argv[1]).next())
