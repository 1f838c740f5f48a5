"""Webhooks: signatures, retries with growing delays, and the final failure."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.webhooks import (
    BACKOFF_SECONDS,
    Delivery,
    DeliveryState,
    PostResult,
    apply_attempt,
    signature_headers,
)

NOW = 1_800_000_000_000
FRESH = Delivery(
    "dl_1", "acme", "wh_1", "workspace.updated", b"{}", DeliveryState.PENDING, NOW, NOW
)

failures = st.builds(
    PostResult,
    st.none() | st.integers(100, 199) | st.integers(300, 599),
    st.text(max_size=9),
    st.integers(0, 9),
)
successes = st.builds(PostResult, st.integers(200, 299))


def test_a_signature_follows_the_standard_webhooks_format() -> None:
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'

    headers = signature_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330_999, body)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@given(st.binary(min_size=24), st.binary(max_size=50), st.integers(0, 10**12))
def test_a_signature_covers_id_time_body_and_secret(secret: bytes, body: bytes, now: int) -> None:
    def signature(secret: bytes, id: str, now: int, body: bytes) -> str:
        return signature_headers(secret, id, now, body)["webhook-signature"]

    expected = signature(secret, "dl_1", now, body)

    assert expected == signature(secret, "dl_1", now, body)
    assert expected != signature(secret + b"x", "dl_1", now, body)
    assert expected != signature(secret, "dl_2", now, body)
    assert expected != signature(secret, "dl_1", now + 1000, body)
    assert expected != signature(secret, "dl_1", now, body + b"x")


@given(st.integers(0, 9), successes)
def test_a_successful_post_delivers_after_any_number_of_attempts(
    tries: int, posted: PostResult
) -> None:
    updated = apply_attempt(replace(FRESH, attempts=tries), posted, NOW + 5, BACKOFF_SECONDS)

    assert updated == replace(FRESH, attempts=tries + 1, state=DeliveryState.DELIVERED)


@given(st.lists(failures, min_size=len(BACKOFF_SECONDS) + 1, max_size=len(BACKOFF_SECONDS) + 1))
def test_a_failing_delivery_is_retried_with_growing_delays_and_then_fails(
    posts: list[PostResult],
) -> None:
    delivery, now = FRESH, NOW
    waits = []
    for posted in posts:
        assert delivery.state is DeliveryState.PENDING
        delivery = apply_attempt(delivery, posted, now, BACKOFF_SECONDS)
        waits.append(delivery.due_at - now)
        now = delivery.due_at

    assert waits[:-1] == [seconds * 1000 for seconds in BACKOFF_SECONDS]
    assert (delivery.state, delivery.attempts) == (DeliveryState.FAILED, len(BACKOFF_SECONDS) + 1)
    assert list(BACKOFF_SECONDS) == sorted(set(BACKOFF_SECONDS))


@given(failures)
def test_without_backoff_a_single_failure_is_final(posted: PostResult) -> None:
    assert apply_attempt(FRESH, posted, NOW, ()).state is DeliveryState.FAILED


def test_only_a_2xx_status_is_ok() -> None:
    assert all(PostResult(status).ok for status in (200, 204, 299))
    assert not any(PostResult(status).ok for status in (None, 100, 199, 300, 301, 410, 503))
