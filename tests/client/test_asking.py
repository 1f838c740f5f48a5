"""When a client asks again, how long it waits, and what it makes of a refusal."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel_client import (
    Busy,
    CarrelError,
    InvalidResponse,
    ValidationError,
    Refusal,
    ServerError,
    ServerUnreachable,
)
from carrel_client.drivers import HttpRequest, Sleep, Steps
from carrel_client.requests import (
    MAX_PAUSE_SECONDS,
    MAX_ATTEMPTS,
    api_path,
    decode_json,
    send_idempotent,
    send_with_retry,
)

GET = HttpRequest("GET", api_path("agents", "ada", "files"))
PUT = HttpRequest("PUT", api_path("agents", "ada", "files", "a.md"), body={"content": ""})
OK = httpx.Response(200, json={})


class Lost(httpx.ConnectError):
    def __init__(self) -> None:
        super().__init__("nobody there")


def failed(status: int = 503, code: str = "unavailable", after: str = "") -> httpx.Response:
    body = {"error": code, "message": "no", "details": {"a": 1}}
    return httpx.Response(status, json=body, headers={"Retry-After": after} if after else {})


def drive(
    steps: Steps[httpx.Response], *answers: httpx.Response | Exception
) -> tuple[list[HttpRequest], list[float], httpx.Response | CarrelError]:
    """What is sent and how long is waited while these answers come, and how it ends."""
    sent: list[HttpRequest] = []
    waits: list[float] = []
    coming = iter(answers)
    step: Any = next(steps)
    try:
        while True:
            if isinstance(step, Sleep):
                waits.append(step.seconds)
                step = steps.send(None)
                continue
            sent.append(step)
            answer = next(coming)
            step = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as end:
        return sent, waits, end.value
    except CarrelError as problem:
        return sent, waits, problem


@pytest.mark.parametrize("bad", [Lost(), failed(), failed(500), failed(429, "rate_limited")])
def test_a_request_that_changes_nothing_is_tried_again(bad: httpx.Response | Exception) -> None:
    sent, waits, end = drive(send_with_retry(GET), bad, bad, OK)

    assert end is OK
    assert len(sent) == 3
    assert 0 < waits[0] < waits[1] * 3


@pytest.mark.parametrize("bad", [Lost(), failed()])
def test_it_is_not_tried_for_ever(bad: httpx.Response | Exception) -> None:
    sent, waits, end = drive(send_with_retry(GET), *[bad] * 20)

    assert isinstance(end, ServerUnreachable if isinstance(bad, Exception) else ServerError)
    assert (len(sent), len(waits)) == (MAX_ATTEMPTS, MAX_ATTEMPTS - 1)


@pytest.mark.parametrize("bad", [Lost(), failed()])
def test_a_write_without_a_key_is_sent_once(bad: httpx.Response | Exception) -> None:
    sent, waits, end = drive(send_with_retry(PUT), bad, OK)

    assert isinstance(end, CarrelError)
    assert (len(sent), waits) == (1, [])


def test_a_write_with_a_key_is_sent_again_under_the_same_key() -> None:
    flying = failed(409, "idempotency_in_flight", after="1")
    busy = failed(409, "busy", after="1")

    sent, waits, end = drive(send_idempotent(PUT), Lost(), flying, busy, OK)

    assert end is OK
    assert len({request.headers["Idempotency-Key"] for request in sent}) == 1
    assert min(waits[1:]) > 1
    [[other], _, _] = drive(send_idempotent(PUT), OK)
    assert other.headers["Idempotency-Key"] != sent[0].headers["Idempotency-Key"]


def test_what_is_refused_is_not_asked_again() -> None:
    for status, code in [(400, "validation_error"), (404, "not_found"), (409, "conflict")]:
        sent, waits, end = drive(send_with_retry(GET), failed(status, code))
        assert isinstance(end, Refusal)
        assert (len(sent), waits, end.status, end.code) == (1, [], status, code)
        assert (end.message, end.details, str(end)) == ("no", {"a": 1}, "no")


def test_a_client_waits_as_long_as_it_is_asked_to_but_not_longer_than_makes_sense() -> None:
    _, [wait], _ = drive(send_with_retry(GET), failed(after="7"), OK)
    assert 7 < wait < 8

    sent, waits, end = drive(send_with_retry(GET), failed(after=str(int(MAX_PAUSE_SECONDS))))
    assert isinstance(end, ServerError)
    assert (len(sent), waits) == (1, [])

    _, [wait], _ = drive(send_with_retry(GET), failed(after="Fri, 31 Dec 1999"), OK)
    assert wait < 1


def test_not_all_clients_come_back_at_once() -> None:
    waits = {drive(send_with_retry(GET), failed(), OK)[1][0] for _ in range(20)}
    assert len(waits) > 10


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"[]", b'{"error": 5}', b"[" * 100_000, b"\xff"], ids=len
)
def test_an_error_without_our_envelope_is_told_by_its_status(body: bytes) -> None:
    _, _, end = drive(send_with_retry(PUT), httpx.Response(502, content=body))

    assert isinstance(end, ServerError)
    assert (end.status, end.code, end.message) == (502, "http_502", "502 Bad Gateway")


def test_a_redirection_is_not_taken_for_an_answer() -> None:
    _, _, end = drive(
        send_with_retry(GET), httpx.Response(302, headers={"Location": "http://other"})
    )

    assert isinstance(end, Refusal)


def test_an_answer_that_is_no_json_is_told_apart() -> None:
    for body in (b"<html>", b"", b"[" * 100_000):
        with pytest.raises(InvalidResponse):
            decode_json(httpx.Response(200, content=body))


def test_a_request_that_cannot_be_sent_is_not_sent_again() -> None:
    sent, _, end = drive(send_with_retry(GET), httpx.LocalProtocolError("illegal header"), OK)
    assert isinstance(end, ValidationError)
    assert len(sent) == 1


def test_busy_is_an_error_of_its_own_when_it_lasts() -> None:
    _, _, end = drive(send_idempotent(PUT), *[failed(409, "busy")] * 9)
    assert isinstance(end, Busy)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
@example(["agents", "..", ".", "..."])
def test_a_name_is_one_segment_whatever_it_holds(names: list[str]) -> None:
    try:
        path = api_path(*names)
    except ValidationError:
        assert any("\ud800" <= each <= "\udfff" for name in names for each in name)
        return
    url = httpx.URL("http://carrel").join(path)
    assert url.raw_path == path.encode()
    assert path.count("/") == 1 + len(names)
    assert not {"", ".", ".."} & set(path.split("/")[2:])


def test_an_empty_name_is_not_asked_for() -> None:
    with pytest.raises(ValidationError):
        api_path("agents", "", "files")
