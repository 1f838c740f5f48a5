"""Servers as an operator starts them, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx

TOKEN = "carrel_owner_of_the_end_to_end_tests"
FILES = "/v1/host/workspace/files"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of servers that encrypt nothing: to read all that this machine trusts, as httpx does
for each, takes a twentieth of a second."""
_CARREL = (sys.executable, "-c", "from carrel.faces.cli import main; main()")


def environment(data: File, **settings: str) -> dict[str, str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("CARREL_")}
    around |= {f"CARREL_{name.upper()}": value for name, value in settings.items()}
    return around | {"CARREL_DATA": str(data), "CARREL_OWNER_TOKEN": TOKEN}


def carrel(data: File, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    command = [*_CARREL, *arguments]
    around = environment(data, **settings)
    return subprocess.run(
        command, env=around, capture_output=True, text=True, timeout=120, check=False
    )


@dataclass(slots=True)
class Live:
    """A server that answers."""

    process: subprocess.Popen[str]
    url: str
    welcome: str

    def http(self, token: str = TOKEN, **more: Any) -> httpx.AsyncClient:
        head = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
        more = {"timeout": 60, "limits": limits, "verify": PLAIN, **more}
        return httpx.AsyncClient(base_url=self.url, headers=head, **more)

    def kill(self) -> None:
        """As the machine would: no process of it gets a word in."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def serving(
    data: File,
    *,
    workers: int = 1,
    port: str = "0",
    program: Sequence[str] = _CARREL,
    arguments: Sequence[str] = (),
    **settings: str,
) -> Iterator[Live]:
    around = environment(data, port=port, workers=str(workers), log_level="error", **settings)
    process = subprocess.Popen(
        [*program, "serve", *arguments],
        env=around,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield _up(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _up(process: subprocess.Popen[str]) -> Live:
    assert process.stdout
    welcome = process.stdout.readline() + process.stdout.readline()
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
