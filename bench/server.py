"""Starts benchmark servers on loopback and sends requests to them."""

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

from bench.load import LoadPlan, LoadResult

TOKEN = "carrel_benchmark_owner_token_of_no_account"
FILES = "/v1/host/workspace/files"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server."""

    port: int
    pids: tuple[int, ...]

    def ask(self, method: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}"
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, data=raw, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.read()

    def etag(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(response.headers["ETag"])

    def load(self, **plan: Any) -> LoadResult:
        """Run the load generator in a separate process and return its result.

        Raises RuntimeError for unexpected status codes.
        """
        load_plan = LoadPlan(port=self.port, **plan)
        completed = subprocess.run(
            [sys.executable, "-m", "bench.load"],
            input=msgspec.json.encode(load_plan),
            stdout=subprocess.PIPE,
            check=True,
        )
        result = msgspec.json.decode(completed.stdout, type=LoadResult)
        expected = "304" if load_plan.tag else "2"
        if bad := {status for status in result.statuses if not status.startswith(expected)}:
            raise RuntimeError(f"{plan.get('method', 'GET')} returned {bad}: {result.statuses}")
        return result

    def memory(self) -> int:
        """Private memory of the server processes in bytes, without shared file pages."""
        return sum(_private_bytes(pid) for pid in self.pids)


def _private_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        lines = dict(line.split(":", 1) for line in rollup.read().splitlines()[1:])
    fields = ("Private_Clean", "Private_Dirty")
    return sum(int(lines[name].split()[0]) * 1024 for name in fields)


@contextmanager
def run_server(
    data: str, *, workers: int = 1, cpus: str = "", **settings: str
) -> Iterator[RunningServer]:
    """Start a server on a free port in its own process group; kill it at the end."""
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
        yield _ready(RunningServer(port, ()), server.pid, workers)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _ready(server: RunningServer, parent: int, workers: int) -> RunningServer:
    """Wait until every worker has responded; a starting worker accepts no connections."""
    deadline = time.monotonic() + 30
    pids: set[int] = set()
    while len(pids) < workers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(pids)} of {workers} workers have responded")
        try:
            with ThreadPoolExecutor(8) as pool:
                responses = [pool.submit(server.ask, "GET", "/bench/process") for _ in range(8)]
                pids |= {int(response.result()) for response in responses}
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    return RunningServer(server.port, tuple(pids | {parent}))
