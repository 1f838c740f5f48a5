"""A server whose parent process is killed, or whose file descriptors are exhausted."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path as File

import httpx
from tests.support.server_process import CARREL, PLAIN, environment, serving
from tests.support.wait import wait_until_sync

SHORTAGE = "too few file descriptors for more connections"


def children_of(pid: int) -> set[int]:
    children = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int(File(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == pid:
                children.add(int(name))
    return children


def is_alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return File(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def can_bind(port: int) -> bool:
    with socket.socket() as listener, suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        return True
    return False


def test_workers_end_with_a_parent_that_is_killed(tmp_path: File) -> None:
    with serving(tmp_path, workers=2) as server:
        workers = children_of(server.process.pid)
        assert len(workers) >= 2
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        wait_until_sync(lambda: not any(map(is_alive, workers)), "the workers end")
        assert can_bind(httpx.URL(server.url).port or 0)


@dataclass
class LimitedServer:
    """A server whose limit of descriptors can be changed while it runs."""

    pid: int
    port: int
    log: File

    def limit_descriptors(self, count: int) -> None:
        hard = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (count, hard))

    def status(self) -> int:
        """Status of /healthz on a new connection; 0 without a response."""
        try:
            url = f"http://127.0.0.1:{self.port}/healthz"
            return httpx.get(url, verify=PLAIN, timeout=0.5).status_code
        except httpx.HTTPError:
            return 0

    def shortages(self) -> list[str]:
        lines = map(json.loads, self.log.read_text().splitlines())
        return [line["said"] for line in lines if line["event"] == SHORTAGE]

    def cpu_seconds(self) -> float:
        fields = File(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def limited_server(directory: File) -> Iterator[LimitedServer]:
    log = directory / "log"
    variables = environment(directory / "data", port="0", log_level="error", sandbox="off")
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", CARREL, "serve"],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout
            port = re.search(r":(\d+)", process.stdout.readline())
            assert port
            server = LimitedServer(process.pid, int(port[1]), log)
            wait_until_sync(lambda: server.status() == 200, "the server is up")
            yield server
        finally:
            process.kill()


def test_a_server_without_free_descriptors_logs_waits_and_serves_again(tmp_path: File) -> None:
    with limited_server(tmp_path) as server:
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[0]
        server.limit_descriptors(5)
        with socket.create_connection(("127.0.0.1", server.port)):
            wait_until_sync(server.shortages, "the shortage is logged")
            used = server.cpu_seconds()
            assert server.status() == 0
            assert server.status() == 0
            assert server.cpu_seconds() - used < 0.5  # Half of the second that it waited.
        assert {*server.shortages()} == {"Too many open files"}
        server.limit_descriptors(before)
        wait_until_sync(lambda: server.status() == 200, "the server serves again")


def test_connections_leave_descriptors_for_files(tmp_path: File) -> None:
    with limited_server(tmp_path) as server:
        used = len(os.listdir(f"/proc/{server.pid}/fd"))
        server.limit_descriptors(used + 40)
        address = ("127.0.0.1", server.port)
        idle = [socket.create_connection(address) for _ in range(60)]

        def is_refused() -> bool:
            """A server that is starting closes files, which leaves room for more."""
            idle.append(socket.create_connection(address))
            return server.status() == 503

        wait_until_sync(is_refused, "further connections are refused")
        assert len(os.listdir(f"/proc/{server.pid}/fd")) < used + 40
        assert {*server.shortages()} == {"connections use all but the reserved ones"}
        for connection in idle:
            connection.close()
        wait_until_sync(lambda: server.status() == 200, "the server serves again")
