"""Refusals and failures as HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.server.http.test_app import problem
from tests.support.sample_endpoints import client

from carrel.core import errors
from carrel.core.errors import Refusal
from carrel.server.http.error_responses import REFUSAL_STATUS, refusal_response


def subclasses(base: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def test_every_refusal_has_a_status_and_none_is_a_server_error() -> None:
    assert set(REFUSAL_STATUS) == set(subclasses())
    assert all(400 <= status < 500 or status == 501 for status in REFUSAL_STATUS.values())


@pytest.mark.parametrize("kind", REFUSAL_STATUS, ids=lambda kind: str(kind.__name__))
def test_a_refusal_becomes_the_closed_envelope(kind: type[Refusal]) -> None:
    plain = kind is not errors.WorkspaceConflict
    refusal = kind("no", why=1) if plain else errors.WorkspaceConflict("no", 3)
    answer = refusal_response(refusal)
    details = {"why": 1} if plain else {"currentVersion": 3}
    assert json.loads(answer.body) == {"error": kind.code, "message": "no", "details": details}
    assert answer.status == REFUSAL_STATUS[kind]


def test_empty_details_are_omitted_and_a_message_is_always_present() -> None:
    assert json.loads(refusal_response(errors.NotFound("")).body) == {
        "error": "not_found",
        "message": "not_found",
    }


def test_a_retryable_refusal_carries_retry_after() -> None:
    assert refusal_response(errors.IdempotencyInFlight("wait")).header(b"retry-after") == b"1"
    assert refusal_response(errors.Busy("wait")).header(b"retry-after") == b"1"
    assert refusal_response(errors.Conflict("no")).header(b"retry-after") is None


@pytest.mark.anyio
async def test_an_unexpected_error_returns_only_a_correlation_id() -> None:
    async with client() as http:
        answer = await http.get("/v1/broken")
        body = problem(answer, 500, "internal_error")
        assert body["details"] == {"correlationId": answer.headers["x-request-id"]}
        assert "secret content" not in answer.text


@pytest.mark.anyio
async def test_corrupt_content_is_reported_and_never_served() -> None:
    async with client() as http:
        answer = await http.get("/v1/corrupt")
        body = problem(answer, 500, "corrupt")
        assert body["message"] == "blob sha256:00ff is gone"
        assert body["details"] == {"correlationId": answer.headers["x-request-id"]}
