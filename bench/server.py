"""Starting what is measured on loopback, and talking to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.load import Plan, Seen

TOKEN = "carrel_benchmark_owner_token_of_no_account"
FILES = "/v1/host/workspace/files"


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is up."""

    port: int
    pids: tuple[int, ...]

    def ask(self, method: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}"
        raw = None if body is None else json.dumps(body).encode()
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, data=raw, method=method, headers=head)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def etag(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.headers["ETag"])

    def load(self, **plan: Any) -> Seen:
        """What a load generator in a process of its own sees."""
        given = Plan(port=self.port, **plan)
        done = subprocess.run(
            [sys.executable, "-m", "bench.load"],
            input=msgspec.json.encode(given),
            stdout=subprocess.PIPE,
            check=True,
        )
        seen = msgspec.json.decode(done.stdout, type=Seen)
        expected = "304" if given.tag else "2"
        if bad := {status for status in seen.statuses if not status.startswith(expected)}:
            raise RuntimeError(f"{plan.get('method', 'GET')} was answered {bad}: {seen.statuses}")
        return seen

    def memory(self) -> int:
        """Bytes that the server processes hold for themselves, shared file pages left out."""
        return sum(_private(pid) for pid in self.pids)


def _private(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        lines = dict(line.split(":", 1) for line in rollup.read().splitlines()[1:])
    kept = ("Private_Clean", "Private_Dirty")
    return sum(int(lines[name].split()[0]) * 1024 for name in kept)


@contextmanager
def running(data: str, *, workers: int = 1, cpus: str = "", **settings: str) -> Iterator[Running]:
    """A server of its own process group on a free port, stopped at the end."""
    environment = {name: value for name, value in os.environ.items() if "CARREL_" not in name}
    environment |= {f"CARREL_{name.upper()}": value for name, value in settings.items()}
    environment |= {
        "CARREL_DATA": data,
        "CARREL_PORT": "0",
        "CARREL_WORKERS": str(workers),
        "CARREL_OWNER_TOKEN": TOKEN,
        "CARREL_LOG_LEVEL": "error",
        "BENCH_CPUS": cpus,
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.serve"],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert server.stdout
        port = int(server.stdout.readline())
        yield _ready(Running(port, ()), server.pid, workers)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _ready(server: Running, parent: int, workers: int) -> Running:
    """Once each of its processes has answered: one that is still starting takes no connections."""
    deadline = time.monotonic() + 30
    heard: set[int] = set()
    while len(heard) < workers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(heard)} of {workers} processes have answered")
        try:
            with ThreadPoolExecutor(8) as crowd:
                asks = [crowd.submit(server.ask, "GET", "/bench/process") for _ in range(8)]
                heard |= {int(ask.result()) for ask in asks}
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    return Running(server.port, tuple(heard | {parent}))
