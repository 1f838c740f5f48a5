"""A file of 100 MiB passes a server and its clients in constant memory; a crash leaves nothing."""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from urllib.parse import urlsplit

from tests.support.server_process import TOKEN, ServerProcess, carrel, serving
from tests.support.wait import wait_until_sync

from carrel_client import Client

MIB = 2**20
SIZE = 100 * MIB
MAX_BYTES = 64_000_000
"""Memory above that of an idle process."""
DAY_SECONDS = 24 * 3600
MEASURED_CLIENT = """
import asyncio, re, sys
from carrel_client import AsyncClient, Client

url, token, workspace, source, target = sys.argv[1:]

def peak():
    with open("/proc/self/status") as status:
        return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", status.read())[1])

async def download():
    async with AsyncClient(url, token) as client:
        await client.workspace(workspace).download("a.bin", target)

with Client(url, token) as client:
    files = client.workspace(workspace)
    files.upload("small.bin", b"x")
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # begin again with the peak
    before = peak()
    files.upload("a.bin", source)
    asyncio.run(download())
    print(peak() - before)
"""


def write_file(path: File, size: int) -> str:
    """A file of random parts; returns its SHA-256."""
    hasher, part = hashlib.sha256(), os.urandom(MIB)
    with path.open("wb") as file:
        for number in range(size // MIB):
            changed = number.to_bytes(8, "big") + part[8:]
            hasher.update(changed)
            file.write(changed)
    return hasher.hexdigest()


def sha256_of(path: File) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def processes_of(server: ServerProcess) -> list[str]:
    """Ids of the processes of the server's group."""
    names = filter(str.isdigit, os.listdir("/proc"))
    return [name for name in names if os.getpgid(int(name)) == server.process.pid]


def private_bytes(pid: str) -> int:
    """Memory in use that is not that of files."""
    _, resident, shared, *_ = File(f"/proc/{pid}/statm").read_text().split()
    return (int(resident) - int(shared)) * resource.getpagesize()


@contextmanager
def peak_memory(server: ServerProcess) -> Iterator[list[int]]:
    """The most memory above that at the start, as the only item at the end."""
    pids, peak, ended = processes_of(server), [0], threading.Event()
    idle = sum(map(private_bytes, pids))

    def poll() -> None:
        while not ended.wait(0.02):
            peak[0] = max(peak[0], sum(map(private_bytes, pids)) - idle)

    watcher = threading.Thread(target=poll)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def new_workspace(live: ServerProcess) -> str:
    with Client(live.url, TOKEN) as client:
        return client.workspaces.create("w").id


def test_100_mib_pass_server_and_clients_in_constant_memory(tmp_path: File) -> None:
    source, target = tmp_path / "source.bin", tmp_path / "target.bin"
    sha256 = write_file(source, SIZE)
    with serving(tmp_path / "data") as live:
        workspace = new_workspace(live)
        with peak_memory(live) as peak:
            arguments = [live.url, TOKEN, workspace, str(source), str(target)]
            measured = subprocess.run(
                [sys.executable, "-c", MEASURED_CLIENT, *arguments],
                capture_output=True,
                text=True,
                check=True,
            )
        assert sha256_of(target) == sha256
        assert int(measured.stdout) < MAX_BYTES
        assert peak[0] < MAX_BYTES


def test_a_server_that_is_killed_during_an_upload_keeps_nothing_of_it(tmp_path: File) -> None:
    data = tmp_path / "data"

    def unfinished() -> list[File]:
        return list((data / "blobs").rglob("unfinished-*"))

    with serving(data) as live:
        workspace = new_workspace(live)
        with begin_upload(live, workspace):
            wait_until_sync(lambda: any(file.stat().st_size for file in unfinished()), "a part")
            live.kill()
    assert len(unfinished()) == 1
    for file in unfinished():
        os.utime(file, (time.time() - 2 * DAY_SECONDS,) * 2)
    assert carrel(data, "gc").returncode == 0
    assert not unfinished()
    assert carrel(data, "doctor").returncode == 0
    with serving(data) as live, Client(live.url, TOKEN) as client:
        assert client.workspace(workspace).list() == ()


def test_a_client_that_disappears_during_an_upload_leaves_nothing(tmp_path: File) -> None:
    data = tmp_path / "data"
    with serving(data) as live:
        workspace = new_workspace(live)
        with begin_upload(live, workspace):
            wait_until_sync(lambda: list((data / "blobs").rglob("unfinished-*")), "the first part")
        wait_until_sync(
            lambda: not any(file.is_file() for file in (data / "blobs").rglob("*")),
            "the end of the upload",
        )
        with Client(live.url, TOKEN) as client:
            assert client.workspace(workspace).list() == ()


@contextmanager
def begin_upload(live: ServerProcess, workspace: str) -> Iterator[None]:
    """Send the first 8 of 50 MiB, and cut the connection at the end."""
    address = urlsplit(live.url)
    with socket.create_connection((address.hostname, address.port or 80)) as connection:
        head = (
            f"PUT /v1/workspaces/{workspace}/files/a.bin HTTP/1.1\r\nHost: carrel\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {50 * MIB}\r\n\r\n"
        )
        connection.sendall(head.encode() + os.urandom(8 * MIB))
        yield
