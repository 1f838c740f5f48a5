"""Bytes of files: rates beside the disk's sequential rate, and memory of the server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path as File
from time import perf_counter, sleep
from typing import Final

from bench.report import Results
from bench.server import TOKEN, RunningServer, run_server

KIB, MIB = 2**10, 2**20
SIZES: Final = {"1 KB": (KIB, 400), "1 MiB": (MIB, 40), "100 MiB": (100 * MIB, 3)}
"""Bytes of a file, and how many are written and read in a round."""
_PART: Final = MIB
_TYPE: Final = {"Content-Type": "application/octet-stream"}
_ACCEPT: Final = {"Accept": "application/octet-stream"}
_BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}


def disk_label(name: str) -> str:
    return f"disk, {name}"


def files_label(name: str) -> str:
    return f"files, {name}"


MEMORY: Final = "memory above idle, 100 MiB written and read"


def measure_round(folder: File, results: Results) -> None:
    """Write and read files of each size, on the disk and over HTTP of a new server."""
    folder.mkdir(parents=True)
    with run_server(str(folder / "data")) as server:
        record = json.loads(server.ask("POST", "/accounts/me/workspaces", {"name": "bytes"}))
        root = f"/v1/workspaces/{record['workspaceId']}/files"
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        _put(connection, f"{root}/warm.bin", os.urandom(2 * MIB))
        _get(connection, f"{root}/warm.bin")
        for name, (size, count) in SIZES.items():
            contents = [os.urandom(size) for _ in range(min(count, 8))]
            results.record(disk_label(name), _disk_rate(folder, contents, count))
            urls = [f"{root}/{size}-{number}.bin" for number in range(count)]
            with _peak_memory(server) as peak:
                results.record(files_label(name), _rate(connection, urls, contents))
            if size == 100 * MIB:
                results.record(MEMORY, peak["bytes"])
        connection.close()


def add_rows(results: Results) -> None:
    for name, (size, _) in SIZES.items():
        is_streamed = size == 100 * MIB
        results.ratio(
            f"PUT and GET of {name} as bytes / disk, written with fsync and read",
            files_label(name),
            disk_label(name),
            at_least=0.5 if is_streamed else None,
        )
        results.figure(f"bytes of {name}, PUT and GET", files_label(name), "MB/s", 1e-6)
    results.figure(MEMORY, MEMORY, "MB", 1e-6, at_most=64)


def _rate(connection: HTTPConnection, urls: list[str], contents: list[bytes]) -> float:
    """Bytes a second, written and read."""
    began, total = perf_counter(), 0
    for number, url in enumerate(urls):
        content = contents[number % len(contents)]
        _put(connection, url, content)
        assert _get(connection, url) == len(content)
        total += len(content)
    return 2 * total / (perf_counter() - began)


def _disk_rate(folder: File, contents: list[bytes], count: int) -> float:
    """Rate of the same files on the disk: written with fsync, then read without cache."""
    began, total = perf_counter(), 0
    for number in range(count):
        content, path = contents[number % len(contents)], folder / f"disk-{number}.bin"
        with path.open("wb") as file:
            for start in range(0, len(content), _PART):
                file.write(content[start : start + _PART])
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with path.open("rb", buffering=0) as file:
            while file.read(_PART):
                pass
        total += len(content)
    return 2 * total / (perf_counter() - began)


def _put(connection: HTTPConnection, url: str, content: bytes) -> None:
    connection.request("PUT", url, content, {**_BEARER, **_TYPE})
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body


def _get(connection: HTTPConnection, url: str) -> int:
    """Bytes of a file, read in parts."""
    connection.request("GET", url, headers={**_BEARER, **_ACCEPT})
    response = connection.getresponse()
    assert response.status == 200
    buffer, size = bytearray(_PART), 0
    while received := response.readinto(buffer):
        size += received
    return size


@contextmanager
def _peak_memory(server: RunningServer) -> Iterator[dict[str, float]]:
    """The most memory of the server above that at the start, until the context is left."""
    idle, peak, ended = server.memory(), {"bytes": 0.0}, threading.Event()

    def poll() -> None:
        while not ended.is_set():
            peak["bytes"] = max(peak["bytes"], server.memory() - idle)
            sleep(0.02)

    watcher = threading.Thread(target=poll)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
