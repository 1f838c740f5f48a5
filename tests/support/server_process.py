"""Servers as an operator starts them, in their own processes."""

from __future__ import annotations

import os
import re
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path as File
from typing import Any, Protocol, TextIO

import httpx
from tests.support.services import fork_server as forked
from tests.support.services import service_client

TOKEN = "carrel_owner_of_the_end_to_end_tests"
FILES = "/v1/host/workspace/files"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""TLS context for clients of plain HTTP servers: creating httpx's default takes 50 ms each."""
CARREL = "from carrel.cli import main; main()"
COLD = f"{CARREL}  # with nothing loaded before"


def environment(data: File, **settings: str) -> dict[str, str]:
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("CARREL_")
    }
    variables |= {f"CARREL_{name.upper()}": value for name, value in settings.items()}
    return variables | {"CARREL_DATA": str(data), "CARREL_OWNER_TOKEN": TOKEN}


@cache
def preloaded_address() -> str:
    """Address of the process that forks with Carrel loaded; None if there is none."""
    return (
        service_client.url_of("loaded")
        if sys.platform == "linux" and service_client.DAEMON_VARIABLE in os.environ
        else ""
    )


def command(program: str = CARREL) -> tuple[str, ...]:
    """The command that runs a Python program, in a process with Carrel loaded if possible."""
    if program == COLD or not preloaded_address():
        return (sys.executable, "-c", program)
    return (sys.executable, "-I", "-S", forked.__file__, preloaded_address(), program)


def carrel(data: File, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command in its own process."""
    return subprocess.run(
        [*command(), *arguments],
        env=environment(data, **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Process(Protocol):
    """The part of subprocess.Popen that the tests use."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...


@dataclass(slots=True)
class ServerProcess:
    """A running server."""

    process: Process
    url: str
    welcome: str
    """What it prints."""

    @property
    def link(self) -> str:
        """The one-time sign-in link, from the file that it names."""
        return File(self.welcome.partition("Sign-in link")[2].split()[1]).read_text().strip()

    def http(self, token: str = TOKEN, **more: Any) -> httpx.AsyncClient:
        head = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
        more = {"timeout": 60, "limits": limits, "verify": PLAIN, **more}
        return httpx.AsyncClient(base_url=self.url, headers=head, **more)

    def kill(self) -> None:
        """Kill all its processes at once, without a chance to clean up."""
        _kill(self.process)


@contextmanager
def serving(
    data: File,
    *,
    workers: int = 1,
    port: str = "0",
    program: str = CARREL,
    arguments: Sequence[str] = (),
    **settings: str,
) -> Iterator[ServerProcess]:
    variables = environment(data, port=port, workers=str(workers), log_level="error", **settings)
    read_end, write_end = os.pipe()
    process = _started([program, "serve", *arguments], variables, write_end)
    with open(read_end, encoding="utf-8") as out:
        try:
            yield _up(process, out)
        finally:
            if process.poll() is None:
                _kill(process)


def _kill(process: Process) -> None:
    """Kill its process group and wait until all are gone, since each holds locks to its end."""
    group = process.pid
    with ExitStack() as watched:
        ends = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(ProcessLookupError):
                if os.getpgid(int(name)) == group:
                    ends.append(os.pidfd_open(int(name)))
                    watched.callback(os.close, ends[-1])
        os.killpg(group, signal.SIGKILL)
        process.wait()
        for end in ends:
            select.select([end], [], [], 30)


def _started(run: list[str], variables: dict[str, str], out: int) -> Process:
    """Start a process in its own session. It owns ``out`` afterwards."""
    try:
        if run[0] != COLD and preloaded_address():
            return forked.Forked(preloaded_address(), run, variables, (0, out, 2))
        real = [sys.executable, "-c", *run]
        return subprocess.Popen(real, env=variables, stdout=out, start_new_session=True)
    finally:
        os.close(out)


def _up(process: Process, out: TextIO) -> ServerProcess:
    welcome = out.readline() + out.readline()
    match = re.search(r"http://[\d.]+:\d+", welcome)
    if match is None:
        raise RuntimeError(f"the server did not start: {welcome}")
    deadline = time.monotonic() + 60
    with httpx.Client(verify=PLAIN) as client:
        while True:
            try:
                client.get(f"{match[0]}/readyz").raise_for_status()
                return ServerProcess(process, match[0], welcome)
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
