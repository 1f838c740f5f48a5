"""Requests of the client: what is retried, how long it waits, and what errors become."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel_client import (
    Busy,
    CapabilityNotProvided,
    CarrelError,
    CorruptContent,
    InvalidResponse,
    Refusal,
    ServerError,
    ServerUnreachable,
    ValidationError,
)
from carrel_client.drivers import (
    Sleep,
    Steps,
    TransportFailure,
    UndecodableBody,
    UnsendableRequest,
)
from carrel_client.http_messages import IDEMPOTENCY_KEY, HttpRequest, HttpResponse
from carrel_client.requests import (
    MAX_ATTEMPTS,
    MAX_PAUSE_SECONDS,
    api_path,
    parse_retry_after,
    send_idempotent,
    send_with_retry,
)

OK = HttpResponse(200, b"{}")


def get_request() -> HttpRequest:
    return HttpRequest("GET", api_path("agents", "ada", "files"))


def put_request() -> HttpRequest:
    path = api_path("agents", "ada", "files", "a.md")
    return HttpRequest("PUT", path, body={"content": ""})


def failure(status: int = 503, code: str = "unavailable", after: str = "") -> HttpResponse:
    body = b'{"error": "%s", "message": "no", "details": {"a": 1}}' % code.encode()
    return HttpResponse(status, body, {"retry-after": after} if after else {})


def drive(
    steps: Steps[HttpResponse], *responses: HttpResponse | Exception
) -> tuple[list[str | None], list[float], HttpResponse | CarrelError]:
    """The keys of the requests sent, the pauses, and the result, for these responses."""
    keys: list[str | None] = []
    pauses: list[float] = []
    pending = iter(responses)
    step: Any = next(steps)
    try:
        while True:
            if isinstance(step, Sleep):
                pauses.append(step.seconds)
                step = steps.send(None)
                continue
            keys.append(step.headers.get(IDEMPOTENCY_KEY))
            response = next(pending)
            if isinstance(response, Exception):
                step = steps.throw(response)
            else:
                step = steps.send(response)
    except StopIteration as end:
        return keys, pauses, end.value
    except CarrelError as error:
        return keys, pauses, error


LOST = TransportFailure("no response")


@pytest.mark.parametrize("bad", [LOST, failure(), failure(500), failure(429, "rate_limited")])
def test_read_is_retried(bad: HttpResponse | Exception) -> None:
    sent, pauses, end = drive(send_with_retry(get_request()), bad, bad, OK)
    assert end is OK
    assert len(sent) == 3
    assert 0 < pauses[0] < pauses[1] * 3


@pytest.mark.parametrize("bad", [LOST, failure()])
def test_retries_are_limited(bad: HttpResponse | Exception) -> None:
    sent, pauses, end = drive(send_with_retry(get_request()), *[bad] * 20)
    assert isinstance(end, ServerUnreachable if isinstance(bad, Exception) else ServerError)
    assert (len(sent), len(pauses)) == (MAX_ATTEMPTS, MAX_ATTEMPTS - 1)


@pytest.mark.parametrize("bad", [LOST, failure()])
def test_write_without_a_key_is_sent_once(bad: HttpResponse | Exception) -> None:
    sent, pauses, end = drive(send_with_retry(put_request()), bad, OK)
    assert isinstance(end, CarrelError)
    assert (len(sent), pauses) == (1, [])


def test_write_with_a_key_is_retried_with_the_same_key() -> None:
    in_flight = failure(409, "idempotency_in_flight", after="1")
    busy = failure(409, "busy", after="1")
    keys, pauses, end = drive(send_idempotent(put_request()), LOST, in_flight, busy, OK)
    assert end is OK
    assert len(set(keys)) == 1
    assert min(pauses[1:]) > 1
    [[other], _, _] = drive(send_idempotent(put_request()), OK)
    assert other != keys[0]
    [[given_key], _, _] = drive(send_idempotent(put_request(), "mine"), OK)
    assert given_key == "mine"


def test_write_that_a_driver_sent_without_its_key_is_not_retried() -> None:
    bad = failure()
    bad.may_retry = False
    sent, pauses, end = drive(send_idempotent(put_request()), bad, OK)
    assert isinstance(end, ServerError)
    assert (len(sent), pauses) == (1, [])


def test_refusals_are_not_retried() -> None:
    for status, code in [(400, "validation_error"), (404, "not_found"), (409, "conflict")]:
        sent, pauses, end = drive(send_with_retry(get_request()), failure(status, code))
        assert isinstance(end, Refusal)
        assert (len(sent), pauses, end.status, end.code) == (1, [], status, code)
        assert (end.message, end.details, str(end)) == ("no", {"a": 1}, "no")


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(500, "corrupt", CorruptContent), (501, "capability_not_provided", CapabilityNotProvided)],
)
def test_permanent_failures_are_not_retried(
    status: int, code: str, error: type[CarrelError]
) -> None:
    sent, pauses, end = drive(send_with_retry(get_request()), failure(status, code))
    assert isinstance(end, error)
    assert (len(sent), pauses) == (1, [])


def test_pause_is_at_least_the_servers_retry_after_up_to_a_limit() -> None:
    _, [pause], _ = drive(send_with_retry(get_request()), failure(after="7"), OK)
    assert 7 < pause < 8
    too_long = failure(after=str(int(MAX_PAUSE_SECONDS)))
    sent, pauses, end = drive(send_with_retry(get_request()), too_long)
    assert isinstance(end, ServerError)
    assert (len(sent), pauses) == (1, [])
    for past_or_invalid in ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999", "soon", "-5"):
        _, [pause], _ = drive(send_with_retry(get_request()), failure(after=past_or_invalid), OK)
        assert pause < 1


@pytest.mark.parametrize("zone", ["GMT", "-0000"])
def test_a_retry_after_may_be_a_date(zone: str) -> None:
    def date_after(seconds: float) -> str:
        return formatdate(time.time() + seconds, usegmt=True).replace("GMT", zone)

    _, [pause], _ = drive(send_with_retry(get_request()), failure(after=date_after(20)), OK)
    assert 18 < pause <= 21
    sent, pauses, end = drive(send_with_retry(get_request()), failure(after=date_after(3600)))
    assert isinstance(end, ServerError)
    assert (len(sent), pauses) == (1, [])


@given(st.text() | st.integers().map(lambda n: f"Fri, 31 Dec 2099 23:59:59 {n:+}"))
@example("Fri, 31 Dec 2099 23:59:59 +99999999999999999999")
@example("Fri, 31 Dec 99999 23:59:59 GMT")
@example("٣")
def test_any_retry_after_is_a_number_of_seconds(text: str) -> None:
    assert parse_retry_after(text) >= 0


def test_pauses_are_spread_over_clients() -> None:
    pauses = {drive(send_with_retry(get_request()), failure(), OK)[1][0] for _ in range(20)}
    assert len(pauses) > 10


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"[]", b'{"error": 5}', b"[" * 100_000, b"\xff"], ids=len
)
def test_error_without_an_envelope_has_the_status_as_its_code(body: bytes) -> None:
    response = HttpResponse(502, body, reason="Bad Gateway")
    _, _, end = drive(send_with_retry(put_request()), response)
    assert isinstance(end, ServerError)
    assert (end.status, end.code, end.message) == (502, "http_502", "502 Bad Gateway")


def test_not_found_of_a_proxy_is_a_plain_refusal() -> None:
    _, _, end = drive(send_with_retry(get_request()), HttpResponse(404, b"<html>"))
    assert type(end) is Refusal


def test_redirection_is_refused() -> None:
    redirection = HttpResponse(302, headers={"location": "http://other"})
    _, _, end = drive(send_with_retry(get_request()), redirection)
    assert isinstance(end, Refusal)


def test_response_that_is_not_json_is_invalid() -> None:
    for body in (b"<html>", b"", b"[" * 100_000):
        with pytest.raises(InvalidResponse):
            HttpResponse(200, body).json()


def test_request_that_cannot_be_sent_or_decoded_is_not_retried() -> None:
    illegal = UnsendableRequest("illegal header")
    sent, _, end = drive(send_with_retry(get_request()), illegal, OK)
    assert (type(end), len(sent)) == (ValidationError, 1)
    sent, _, end = drive(send_with_retry(get_request()), UndecodableBody("bad gzip"), OK)
    assert (type(end), len(sent)) == (InvalidResponse, 1)


def test_busy_is_raised_when_it_lasts() -> None:
    _, _, end = drive(send_idempotent(put_request()), *[failure(409, "busy")] * 9)
    assert isinstance(end, Busy)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
@example(["agents", "..", ".", "..."])
def test_name_is_one_segment_of_the_path(names: list[str]) -> None:
    try:
        path = api_path(*names)
    except ValidationError:
        assert any("\ud800" <= char <= "\udfff" for name in names for char in name)
        return
    url = httpx.URL("http://carrel").join(path)
    assert url.raw_path == path.encode()
    assert path.count("/") == 1 + len(names)
    assert not {"", ".", ".."} & set(path.split("/")[2:])


def test_empty_name_is_refused() -> None:
    with pytest.raises(ValidationError):
        api_path("agents", "", "files")
