"""What Prometheus is told. Adapters count in plain integers; this asks them when asked itself."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from carrel.server.http.endpoint import Endpoint, Request, endpoint
from carrel.server.http.response import Response

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_CLASSES: Final = ("closed", "1xx", "2xx", "3xx", "4xx", "5xx")
_CELL: Final = len(_BUCKETS) + 2
"""One for each bucket, one for what took longer still, one for the sum."""
_EVERY: Final = 1.0


class RouteHistogram:
    """Times the requests of one route and method, in plain numbers until somebody asks."""

    __slots__ = ("_cells", "_labels", "_told")

    def __init__(self, route: str, method: str) -> None:
        self._labels = (route, method)
        self._cells = [[0.0] * _CELL for _ in _CLASSES]
        self._told = [[0.0] * _CELL for _ in _CLASSES]

    def observe(self, status: int, seconds: float) -> None:
        """Count one request; a status of 0 says that the client left before it was answered."""
        cell = self._cells[status // 100]
        cell[bisect_left(_BUCKETS, seconds)] += 1
        cell[-1] += seconds

    def pass_on(self, seconds: Histogram) -> None:
        """Tell the histogram what it was not told yet."""
        for at, cell in enumerate(self._cells):
            if cell == self._told[at]:
                continue
            child = seconds.labels(*self._labels, _CLASSES[at])
            fresh = [now - was for now, was in zip(cell, self._told[at], strict=True)]
            # Its own observe() would be asked once a request, for three times the price of ours
            # and ten times where workers pool their numbers.
            for bucket, count in zip(child._buckets, fresh, strict=False):
                bucket.inc(count)
            child._sum.inc(fresh[-1])
            self._told[at] = cell.copy()


@dataclass(slots=True)
class _ObservedNumber:
    """A number that somebody else keeps, and how to publish it."""

    read: Callable[[], float]
    publish: Callable[[float], None]
    counts: bool
    last: float = 0.0

    def pass_on(self) -> None:
        now = self.read()
        self.publish(max(0.0, now - self.last) if self.counts else now)
        self.last = now


class Metrics:
    """All the numbers of one process; ``directory`` is where several workers pool theirs.

    To pool them, PROMETHEUS_MULTIPROC_DIR must name the directory before this is imported.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.in_flight = 0
        self.open_streams = 0
        self._directory = directory
        self._registry = CollectorRegistry()
        self._watches: list[_ObservedNumber] = []
        self._meters: list[RouteHistogram] = []
        self._later: asyncio.TimerHandle | None = None
        self._seconds = Histogram(
            "carrel_request_seconds",
            "Requests and how long they took, by route, method and class of status.",
            ("route", "method", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.observe("carrel_requests_in_flight", "Being served now.", lambda: self.in_flight)
        self.observe("carrel_streams_open", "Event streams open now.", lambda: self.open_streams)
        if directory is None:
            ProcessCollector(registry=self._registry)

    def meter(self, route: str, method: str) -> RouteHistogram:
        meter = RouteHistogram(route, method)
        self._meters.append(meter)
        return meter

    def observe(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Publish what ``read`` says: as a counter if the name ends in ``_total``, else a gauge."""
        counts = name.endswith("_total")
        publish = (
            Counter(name, help, registry=self._registry).inc
            if counts
            else Gauge(name, help, registry=self._registry, multiprocess_mode="livesum").set
        )
        self._watches.append(_ObservedNumber(read, publish, counts))

    def finished(self) -> None:
        """A request is over: where others may be asked for our numbers, they are told soon."""
        self.in_flight -= 1
        if self._later is None and self._directory is not None:
            self._later = asyncio.get_running_loop().call_later(_EVERY, self._pass_on)

    def _pass_on(self) -> None:
        self._later = None
        for meter in self._meters:
            meter.pass_on(self._seconds)
        for watch in self._watches:
            watch.pass_on()

    def render(self) -> bytes:
        """Everything, of all workers, in Prometheus's text format."""
        self._pass_on()
        registry = self._registry
        if self._directory is not None:
            registry = CollectorRegistry()
            # The library has types, but none on this constructor.
            MultiProcessCollector(registry, path=self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def endpoint(self) -> Endpoint:
        """``GET /metrics``."""

        @endpoint(
            "GET",
            "/metrics",
            id="metrics",
            public=True,
            allow_unknown_query=True,
            responses={200: "text/plain"},
            tag="Operations",
        )
        async def metrics(call: Request[None]) -> Response:
            """The numbers that Prometheus collects."""
            return Response.content(self.render(), CONTENT_TYPE_LATEST)

        return metrics
