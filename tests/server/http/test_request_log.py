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
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What is written while logging is configured, at the level of the test's parameter."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    out = io.StringIO()
    request_log.configure(getattr(request, "param", "info"), out)
    yield out
    structlog.reset_defaults()
    root.handlers[:], root.level = before
    for name in ("uvicorn.access", "httpx", "httpcore", "dulwich"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


async def test_writes_and_errors_are_logged_and_reads_are_not(written: io.StringIO) -> None:
    async with client() as http:
        await http.get("/v1/echo/a")
        await http.put("/v1/notes/secret-name.md", json={"text": "secret-text"})
        await http.get("/v1/echo/a?word=secret-word&unknown=1")
    put, get = lines(written)
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
    assert "secret" not in written.getvalue()
    assert "Bearer" not in written.getvalue()


@pytest.mark.parametrize("written", ["debug"], indirect=True)
async def test_reads_are_logged_where_somebody_debugs(written: io.StringIO) -> None:
    async with client() as http:
        answer = await http.get("/v1/echo/a")
    [line] = lines(written)
    assert (line["level"], line["method"]) == ("debug", "GET")
    assert line["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("written", ["warning"], indirect=True)
async def test_a_quiet_level_is_quiet(written: io.StringIO) -> None:
    async with client() as http:
        await http.put("/v1/notes/a", json={"text": "x"})
    assert lines(written) == []


async def test_what_took_long_is_logged(written: io.StringIO) -> None:
    app = sample_app()
    app._log.slow_seconds = 0.0
    async with client(app) as http:
        await http.get("/v1/echo/a")
    [line] = lines(written)
    assert (line["level"], line["method"]) == ("info", "GET")


async def test_a_failure_is_logged_once_by_type_and_place(written: io.StringIO) -> None:
    async with client() as http:
        answer = await http.get("/v1/broken")
    [failure] = [line for line in lines(written) if line["level"] == "error"]
    assert failure["request_id"] == answer.json()["details"]["correlationId"]
    assert failure["failure"]["error"] == "builtins.KeyError"
    assert failure["failure"]["at"][-1].startswith("sample_endpoints.broken:")
    assert "secret" not in written.getvalue()


async def test_whatever_is_logged_during_a_request_carries_its_id(written: io.StringIO) -> None:
    @endpoint("GET", "/v1/chatty", responses={204: None})
    async def chatty(call: Request) -> Response:
        structlog.get_logger("elsewhere").info("hello")
        logging.getLogger("library").warning("watch %s", "out")
        return Response.empty()

    async with client(sample_app(chatty)) as http:
        answer = await http.get("/v1/chatty")
    ours, theirs = lines(written)
    assert (ours["event"], theirs["event"]) == ("hello", "watch out")
    assert theirs["logger"] == "library"
    assert {ours["request_id"], theirs["request_id"]} == {answer.headers["x-request-id"]}


def test_libraries_that_write_what_callers_send_are_hushed(written: io.StringIO) -> None:
    for name in ("uvicorn.access", "httpx", "dulwich.server"):
        logging.getLogger(name).info("GET /?q=secret")
    assert written.getvalue() == ""


def test_only_the_disk_and_the_database_file_may_speak_for_themselves() -> None:
    error = ValueError("content")
    error.__cause__ = OSError(28, "No space left on device", "/secret")
    told = request_log.error_fields(error)
    assert told["error"] == "builtins.ValueError"
    assert told["cause"]["said"] == "No space left on device"
    assert told["cause"]["code"] == 28
    assert "content" not in str(told)
    assert "/secret" not in str(told)
    full = request_log.error_fields(sqlite3.OperationalError("database or disk is full"))
    assert full["said"] == "database or disk is full"
