"""OpenTelemetry span per request. Imported only if tracing is enabled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from carrel.server.http.endpoint import Headers


class Tracing:
    """Creates server spans."""

    def __init__(self, tracer: Any) -> None:
        self._tracer: Tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, method: str, route: str, headers: Headers) -> Iterator[Span]:
        """Open a server span, as child of the caller's trace if it sent one."""
        header_names = (b"traceparent", b"tracestate")
        carrier = {n.decode(): headers[n].decode("latin-1") for n in header_names if n in headers}
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    @staticmethod
    def record_response(span: Span, status: int, tenant: str | None) -> None:
        span.set_attribute("http.response.status_code", status)
        if tenant is not None:
            span.set_attribute("carrel.tenant", tenant)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
