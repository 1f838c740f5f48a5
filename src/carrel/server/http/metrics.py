"""Prometheus metrics: plain counters, converted when they are scraped or flushed."""

from __future__ import annotations

import asyncio
import hmac
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

from carrel.actions.accounts import credentials
from carrel.core.errors import TooManyAttempts, Unauthenticated
from carrel.server.http.endpoint import Endpoint, Request, endpoint
from carrel.server.http.request_parsing import parse_bearer_token
from carrel.server.http.response import Response

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_STATUS_CLASSES: Final = ("closed", "1xx", "2xx", "3xx", "4xx", "5xx")
_CELL_SIZE: Final = len(_BUCKETS) + 2
"""One count per bucket, one for slower requests, and the sum of seconds."""
_EMPTY_CELL: Final = [0.0] * _CELL_SIZE
_FLUSH_SECONDS: Final = 1.0


class RouteHistogram:
    """Request durations of one route and method, in plain lists until flushed."""

    __slots__ = ("_cells", "_flushed", "_labels")

    def __init__(self, route: str, method: str) -> None:
        self._labels = (route, method)
        self._cells = [[0.0] * _CELL_SIZE for _ in _STATUS_CLASSES]
        self._flushed = [_EMPTY_CELL] * len(_STATUS_CLASSES)
        """Cells at the last flush; replaced, never changed."""

    def observe(self, status: int, seconds: float) -> None:
        """Count one request. Status 0: the client disconnected before the response."""
        cell = self._cells[status // 100]
        cell[bisect_left(_BUCKETS, seconds)] += 1
        cell[-1] += seconds

    def flush_to(self, histogram: Histogram) -> None:
        """Add the counts since the last flush to the Prometheus histogram."""
        for index, cell in enumerate(self._cells):
            if cell == self._flushed[index]:
                continue
            child = histogram.labels(*self._labels, _STATUS_CLASSES[index])
            deltas = [
                now - previous for now, previous in zip(cell, self._flushed[index], strict=True)
            ]
            # Histogram.observe() per request would cost 3 times as much as RouteHistogram.observe,
            # and 10 times in multiprocess mode.
            for bucket, count in zip(child._buckets, deltas, strict=False):
                bucket.inc(count)
            child._sum.inc(deltas[-1])
            self._flushed[index] = cell.copy()


@dataclass(slots=True)
class _ObservedNumber:
    """A number kept by another component, and how to publish it."""

    read_value: Callable[[], float]
    publish: Callable[[float], None]
    is_counter: bool
    last_value: float = 0.0

    def flush(self) -> None:
        value = self.read_value()
        self.publish(max(0.0, value - self.last_value) if self.is_counter else value)
        self.last_value = value


class Metrics:
    """Metrics of one process.

    With `directory`, several workers share their values there; PROMETHEUS_MULTIPROC_DIR must name
    it before this module is imported. With `token`, readers need it: the values are totals over
    all tenants, which tell each of them how much the others do.
    """

    def __init__(self, directory: str | None = None, token: str = "") -> None:
        self.in_flight = 0
        self.open_streams = 0
        self._directory = directory
        self._token_hash = credentials.hash_token(token) if token else None
        self._registry = CollectorRegistry()
        self._observed: list[_ObservedNumber] = []
        self._histograms: list[RouteHistogram] = []
        self._flush_timer: asyncio.TimerHandle | None = None
        self._request_seconds = Histogram(
            "carrel_request_seconds",
            "Request duration in seconds by route, method and status class.",
            ("route", "method", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.observe("carrel_requests_in_flight", "Requests in flight.", lambda: self.in_flight)
        self.observe("carrel_event_streams_open", "Open event streams.", lambda: self.open_streams)
        if directory is None:
            ProcessCollector(registry=self._registry)

    def add_route(self, route: str, method: str) -> RouteHistogram:
        histogram = RouteHistogram(route, method)
        self._histograms.append(histogram)
        return histogram

    def observe(self, name: str, help: str, read_value: Callable[[], float]) -> None:
        """Publish `read_value` as counter if `name` ends in `_total`, else as gauge."""
        is_counter = name.endswith("_total")
        publish = (
            Counter(name, help, registry=self._registry).inc
            if is_counter
            else Gauge(name, help, registry=self._registry, multiprocess_mode="livesum").set
        )
        self._observed.append(_ObservedNumber(read_value, publish, is_counter))

    def request_finished(self) -> None:
        """Count a finished request; in multiprocess mode schedule a flush."""
        self.in_flight -= 1
        if self._flush_timer is None and self._directory is not None:
            self._flush_timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._flush_timer = None
        for histogram in self._histograms:
            histogram.flush_to(self._request_seconds)
        for number in self._observed:
            number.flush()

    def render(self) -> bytes:
        """Metrics of all workers in Prometheus text format."""
        self._flush()
        registry = self._registry
        if self._directory is not None:
            registry = CollectorRegistry()
            # The library does not annotate this constructor.
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
            refusals=(Unauthenticated, TooManyAttempts),
            tag="Operations",
        )
        async def get_metrics(request: Request[None]) -> Response:
            """Get Prometheus metrics of all tenants.

            Requires a token of its own, or the platform's, if the server has one.
            """
            token = parse_bearer_token(request.headers)
            await request.ports.attempts.limit(token, lambda: self._check_token(token))
            return Response.content(self.render(), CONTENT_TYPE_LATEST)

        return get_metrics

    async def _check_token(self, token: str) -> None:
        """Raise Unauthenticated unless it is the token that readers need, if they need one."""
        if self._token_hash is not None and not hmac.compare_digest(
            credentials.hash_token(token), self._token_hash
        ):
            raise Unauthenticated(credentials.INVALID_CREDENTIAL)
