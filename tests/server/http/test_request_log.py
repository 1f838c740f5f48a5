"""Logs: JSON, with the request's id, without content, secrets or query values."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from tests.support.sample_endpoints import client, sample_app

from carrel.server.http import request_log
from carrel.server.http.endpoint import Request, Response, endpoint

pytestmark = pytest.mark.anyio


@pytest.fixture
def log_output(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """The log output at the level that the test's parameter names."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    out = io.StringIO()
    request_log.configure(getattr(request, "param", "info"), out)
    yield out
    structlog.reset_defaults()
    root.handlers[:], root.level = before
    for name in ("uvicorn.access", "httpx", "httpcore", "dulwich"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_output.getvalue().splitlines()]


async def test_writes_and_errors_are_logged_and_reads_are_not(log_output: io.StringIO) -> None:
    async with client() as http:
        await http.get("/v1/echo/a")
        await http.put("/v1/notes/secret-name.md", json={"text": "secret-text"})
        await http.get("/v1/echo/a?word=secret-word&unknown=1")
    put, get = lines(log_output)
    assert (put["event"], put["level"], put["method"], put["status"]) == (
        "request",
        "info",
        "PUT",
        200,
    )
    assert put["route"] == "/v1/notes/{path...}"
    assert put["tenant"] == "acme"
    assert put["request_id"].startswith("req_")
    assert put["time"].endswith("+00:00")
    assert (get["method"], get["status"]) == ("GET", 400)
    assert "secret" not in log_output.getvalue()
    assert "Bearer" not in log_output.getvalue()


@pytest.mark.parametrize("log_output", ["debug"], indirect=True)
async def test_reads_are_logged_at_debug_level(log_output: io.StringIO) -> None:
    async with client() as http:
        answer = await http.get("/v1/echo/a")
    [line] = lines(log_output)
    assert (line["level"], line["method"]) == ("debug", "GET")
    assert line["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("log_output", ["warning"], indirect=True)
async def test_writes_are_not_logged_at_warning_level(log_output: io.StringIO) -> None:
    async with client() as http:
        await http.put("/v1/notes/a", json={"text": "x"})
    assert lines(log_output) == []


async def test_a_slow_request_is_logged(log_output: io.StringIO) -> None:
    app = sample_app()
    app._log.slow_seconds = 0.0
    async with client(app) as http:
        await http.get("/v1/echo/a")
    [line] = lines(log_output)
    assert (line["level"], line["method"]) == ("info", "GET")


async def test_a_failure_is_logged_once_by_type_and_place(log_output: io.StringIO) -> None:
    async with client() as http:
        answer = await http.get("/v1/broken")
    [failure] = [line for line in lines(log_output) if line["level"] == "error"]
    assert failure["request_id"] == answer.json()["details"]["correlationId"]
    assert failure["failure"]["error"] == "builtins.KeyError"
    assert failure["failure"]["at"][-1].startswith("sample_endpoints.broken:")
    assert "secret" not in log_output.getvalue()


async def test_lines_logged_during_a_request_carry_its_id(log_output: io.StringIO) -> None:
    @endpoint("GET", "/v1/chatty", responses={204: None})
    async def chatty(call: Request) -> Response:
        structlog.get_logger("elsewhere").info("hello")
        logging.getLogger("library").warning("watch %s", "out")
        return Response.empty()

    async with client(sample_app(chatty)) as http:
        answer = await http.get("/v1/chatty")
    ours, theirs = lines(log_output)
    assert (ours["event"], theirs["event"]) == ("hello", "watch out")
    assert theirs["logger"] == "library"
    assert {ours["request_id"], theirs["request_id"]} == {answer.headers["x-request-id"]}


def test_loggers_of_libraries_that_log_request_data_are_silenced(log_output: io.StringIO) -> None:
    for name in ("uvicorn.access", "httpx", "dulwich.server"):
        logging.getLogger(name).info("GET /?q=secret")
    assert log_output.getvalue() == ""


def test_only_disk_and_database_errors_log_their_own_text() -> None:
    error = ValueError("content")
    error.__cause__ = OSError(28, "No space left on device", "/secret")
    fields = request_log.error_fields(error)
    assert fields["error"] == "builtins.ValueError"
    assert fields["cause"]["said"] == "No space left on device"
    assert fields["cause"]["code"] == 28
    assert "content" not in str(fields)
    assert "/secret" not in str(fields)
    full = request_log.error_fields(sqlite3.OperationalError("database or disk is full"))
    assert full["said"] == "database or disk is full"
