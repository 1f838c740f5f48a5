"""Traces when OpenTelemetry is on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.support.sample_endpoints import client, sample_app

pytestmark = pytest.mark.anyio

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_request_is_a_span_that_continues_the_callers_trace() -> None:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with client(sample_app(tracer=provider.get_tracer("carrel"))) as http:
        await http.put("/v1/notes/secret", json={"text": "secret"}, headers={"traceparent": PARENT})
        await http.get("/v1/broken")
        await http.get("/v1/nothing", headers={"traceparent": "nonsense"})
    put, broken, nothing = exporter.get_finished_spans()
    assert put.name == "PUT /v1/notes/{path...}"
    assert dict(put.attributes or {}) == {
        "http.request.method": "PUT",
        "http.route": "/v1/notes/{path...}",
        "http.response.status_code": 200,
        "carrel.tenant": "acme",
    }
    assert put.context is not None
    assert put.context.trace_id == 0x0AF7651916CD43DD8448EB211C80319C
    assert put.parent is not None
    assert put.parent.span_id == 0xB7AD6B7169203331
    assert broken.status.status_code is StatusCode.ERROR
    assert not broken.events
    assert nothing.name == "GET (unknown)"
    assert nothing.parent is None


async def test_a_span_does_not_contain_the_text_of_a_connection_error() -> None:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/alive",
        "query_string": b"",
        "headers": [],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: dict[str, Any]) -> None:
        raise RuntimeError("some content")

    with pytest.raises(RuntimeError):
        await sample_app(tracer=provider.get_tracer("carrel"))(scope, receive, send)
    assert "content" not in exporter.get_finished_spans()[0].to_json()


def test_opentelemetry_is_not_imported_when_tracing_is_off() -> None:
    program = "import carrel.server.http.app, sys; print('opentelemetry' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
