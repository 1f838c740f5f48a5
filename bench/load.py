"""HTTP load generator: many connections, one request in flight on each.

Runs in a separate process, so that it shares no interpreter with the server: `python -m bench.load`
reads a LoadPlan as JSON from stdin and prints a LoadResult as JSON.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from functools import partial
from itertools import cycle
from time import perf_counter, process_time
from typing import Any, cast

import msgspec
import uvloop

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)")
_ETAG = re.compile(rb"(?i)\r\netag: *([^\r\n]+)")


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to send. Connections cycle through `paths` from different offsets."""

    port: int
    token: str = ""
    method: str = "GET"
    paths: list[str]
    connections: int = 1
    seconds: float = 1.0
    body: str = ""
    bodies: list[str] = []
    """Bodies to cycle through, instead of `body`."""
    conditional: bool = False
    """Each connection writes one path, with the last response's ETag as If-Match."""
    tag: str = ""
    """ETag sent as If-None-Match with every request."""
    once: bool = False
    """Request every path once, distributed over the connections, then stop."""
    cpu: int | None = None


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    requests: int
    rate: float
    p50: float
    p99: float
    statuses: dict[str, int]
    bytes: int
    cpu: float
    """CPU seconds of the load generator."""


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the last response is complete."""

    def __init__(self, plan: LoadPlan, number: int, finished: asyncio.Future[None]) -> None:
        self._plan, self._finished = plan, finished
        step = max(1, len(plan.paths) // max(1, plan.connections))
        self._next_request = (number * step) % len(plan.paths)
        head, rest = self._parts(plan.paths[self._next_request], plan.body)
        self._head, self._rest = head + b"\r\nIf-Match: ", rest
        self._requests = (
            [head + rest]
            if plan.conditional
            else [
                b"".join(self._parts(path, body))
                for path, body in zip(plan.paths, cycle(plan.bodies or [plan.body]))
            ]
        )
        self._next_request = 0 if plan.conditional else self._next_request
        if plan.once:
            self._requests = self._requests[number :: plan.connections]
            self._next_request = 0
        self._etag = b""
        self._buffer = b""
        self._needed = 0
        self._stopping = False
        self._began = 0.0
        self.latencies: list[float] = []
        self.statuses: dict[str, int] = {}
        self.received = 0

    def _parts(self, path: str, text: str) -> tuple[bytes, bytes]:
        """Split a request at the place where If-Match is inserted."""
        plan = self._plan
        body = text.encode()
        lines = [f"{plan.method} {path} HTTP/1.1", "Host: bench"]
        lines += [f"Authorization: Bearer {plan.token}"] if plan.token else []
        lines += [f"If-None-Match: {plan.tag}"] if plan.tag else []
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
        return "\r\n".join(lines).encode(), b"\r\n\r\n" + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        self._began = perf_counter()
        if self._etag:
            self._transport.write(self._head + self._etag + self._rest)
            return
        self._transport.write(self._requests[self._next_request])
        self._next_request += 1
        if self._next_request == len(self._requests):
            self._next_request = 0
            self._stopping = self._stopping or self._plan.once

    def stop(self) -> None:
        self._stopping = True

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._needed:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            self._needed = end + 4 + _length(buffer)
        if len(buffer) < self._needed:
            self._buffer = buffer
            return
        self._answered(buffer)

    def _answered(self, buffer: bytes) -> None:
        self.latencies.append(perf_counter() - self._began)
        status = buffer[9:12].decode()
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.received += len(buffer)
        if self._plan.conditional:
            self._etag = _etag(buffer)
        self._buffer, self._needed = b"", 0
        if self._stopping:
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, problem: Exception | None) -> None:
        if not self._finished.done():
            self._finished.set_result(None)


def _length(head: bytes) -> int:
    match = _LENGTH.search(head)
    return int(match[1]) if match else 0


def _etag(buffer: bytes) -> bytes:
    match = _ETAG.search(buffer)
    return match[1] if match else b""


def _identity(client: Connection) -> Connection:
    return client


async def load(plan: LoadPlan) -> LoadResult:
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(plan.connections)]
    clients = [Connection(plan, n, future) for n, future in enumerate(futures)]
    began, cpu_started = perf_counter(), process_time()
    for client in clients:
        await loop.create_connection(partial(_identity, client), "127.0.0.1", plan.port)
    await asyncio.wait(futures, timeout=plan.seconds)
    for client in clients:
        client.stop()
    took = perf_counter() - began
    sent = sum(len(client.latencies) for client in clients)
    await asyncio.wait(futures, timeout=30)
    latencies = sorted(took for client in clients for took in client.latencies)
    statuses: dict[str, int] = {}
    for client in clients:
        for status, count in client.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    return LoadResult(
        requests=sent,
        rate=sent / took,
        p50=_percentile(latencies, 0.5),
        p99=_percentile(latencies, 0.99),
        statuses=statuses,
        bytes=sum(client.received for client in clients),
        cpu=process_time() - cpu_started,
    )


def _percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=LoadPlan)
    if plan.cpu is not None:
        os.sched_setaffinity(0, {plan.cpu})
    result: Any = uvloop.run(load(plan))
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")


if __name__ == "__main__":
    main()
