"""Servers as an operator starts them, in processes of their own."""

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
from tests.support.services import service_client as ask

TOKEN = "carrel_owner_of_the_end_to_end_tests"
FILES = "/v1/host/workspace/files"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of servers that encrypt nothing: to read all that this machine trusts, as httpx does
for each, takes a twentieth of a second."""
CARREL = "from carrel.cli import main; main()"
COLD = f"{CARREL}  # with nothing loaded before"


def environment(data: File, **settings: str) -> dict[str, str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("CARREL_")}
    around |= {f"CARREL_{name.upper()}": value for name, value in settings.items()}
    return around | {"CARREL_DATA": str(data), "CARREL_OWNER_TOKEN": TOKEN}


@cache
def loaded() -> str:
    """Where processes are to be had that have Carrel loaded, if they are to be had here."""
    return ask.url_of("loaded") if sys.platform == "linux" and ask.KEEPER in os.environ else ""


def command(program: str = CARREL) -> tuple[str, ...]:
    """How to run a program in Python, in a process that need not load Carrel first."""
    if program == COLD or not loaded():
        return (sys.executable, "-c", program)
    return (sys.executable, "-I", "-S", forked.__file__, loaded(), program)


def carrel(data: File, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*command(), *arguments],
        env=environment(data, **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Process(Protocol):
    """As much of one as tests need."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...


@dataclass(slots=True)
class Live:
    """A server that answers."""

    process: Process
    url: str
    welcome: str

    def http(self, token: str = TOKEN, **more: Any) -> httpx.AsyncClient:
        head = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
        more = {"timeout": 60, "limits": limits, "verify": PLAIN, **more}
        return httpx.AsyncClient(base_url=self.url, headers=head, **more)

    def kill(self) -> None:
        """As the machine would: no process of it gets a word in."""
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
) -> Iterator[Live]:
    around = environment(data, port=port, workers=str(workers), log_level="error", **settings)
    heard, said = os.pipe()
    process = _started([program, "serve", *arguments], around, said)
    with open(heard, encoding="utf-8") as out:
        try:
            yield _up(process, out)
        finally:
            if process.poll() is None:
                _kill(process)


def _kill(process: Process) -> None:
    """All of its group, and return when all are gone: what one holds, it holds to its very end."""
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


def _started(run: list[str], around: dict[str, str], out: int) -> Process:
    """A process in a session of its own, which writes to ``out``: nobody else does after this."""
    try:
        if run[0] != COLD and loaded():
            return forked.Forked(loaded(), run, around, (0, out, 2))
        real = [sys.executable, "-c", *run]
        return subprocess.Popen(real, env=around, stdout=out, start_new_session=True)
    finally:
        os.close(out)


def _up(process: Process, out: TextIO) -> Live:
    welcome = out.readline() + out.readline()
    found = re.search(r"http://[\d.]+:\d+", welcome)
    if found is None:
        raise RuntimeError(f"the server did not start: {welcome}")
    deadline = time.monotonic() + 60
    with httpx.Client(verify=PLAIN) as client:
        while True:
            try:
                client.get(f"{found[0]}/readyz").raise_for_status()
                return Live(process, found[0], welcome)
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
