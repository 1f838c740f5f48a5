"""Webhooks: signed as the convention says, tried again ever later, and given up in the end."""

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


def test_a_signature_is_the_one_of_the_convention() -> None:
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

    mine = signature(secret, "dl_1", now, body)

    assert mine == signature(secret, "dl_1", now, body)
    assert mine != signature(secret + b"x", "dl_1", now, body)
    assert mine != signature(secret, "dl_2", now, body)
    assert mine != signature(secret, "dl_1", now + 1000, body)
    assert mine != signature(secret, "dl_1", now, body + b"x")


@given(st.integers(0, 9), successes)
def test_what_was_taken_is_delivered_whatever_came_before(tries: int, posted: PostResult) -> None:
    after_it = apply_attempt(replace(FRESH, attempts=tries), posted, NOW + 5, BACKOFF_SECONDS)

    assert after_it == replace(FRESH, attempts=tries + 1, state=DeliveryState.DELIVERED)


@given(st.lists(failures, min_size=len(BACKOFF_SECONDS) + 1, max_size=len(BACKOFF_SECONDS) + 1))
def test_what_fails_is_tried_again_ever_later_and_given_up_in_the_end(
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
def test_without_patience_one_failure_is_the_end(posted: PostResult) -> None:
    assert apply_attempt(FRESH, posted, NOW, ()).state is DeliveryState.FAILED


def test_only_a_status_of_success_is_success() -> None:
    assert all(PostResult(status).ok for status in (200, 204, 299))
    assert not any(PostResult(status).ok for status in (None, 100, 199, 300, 301, 410, 503))
