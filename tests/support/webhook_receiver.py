"""A fake webhook sender, and the background dispatch that uses it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from carrel.actions.events import webhooks
from carrel.actions.events.webhook_dispatch import enqueue_deliveries, run_dispatch
from carrel.actions.events.webhooks import NewWebhook
from carrel.core.access import Actor
from carrel.core.webhooks import Delivery, DeliveryState, PostResult
from carrel.ports import Ports

ADA = Actor("acme", "ada")
OK, BROKEN = PostResult(200, "", 1), PostResult(503, "", 1)


@dataclass(frozen=True)
class WebhookRequest:
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = json.loads(self.body)
        return payload

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class FakeWebhookSender:
    """A webhook sender that hands every request to the test and answers as it says."""

    def __init__(
        self, answer: Callable[[WebhookRequest], Awaitable[PostResult]] | None = None
    ) -> None:
        self._answer = answer
        self.requests: asyncio.Queue[WebhookRequest] = asyncio.Queue()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        request = WebhookRequest(url, headers, body)
        self.requests.put_nowait(request)
        return await self._answer(request) if self._answer else OK

    async def refusal_reason(self, url: str) -> str | None:
        return None

    async def next(self) -> WebhookRequest:
        async with asyncio.timeout(30):
            return await self.requests.get()


@asynccontextmanager
async def run_dispatcher(
    ports: Ports, *, backoff: tuple[int, ...] = (0,) * 5, processes: int = 1
) -> AsyncIterator[None]:
    """Run the dispatch in the background, as this many processes would."""
    await enqueue_deliveries(ports)
    stop = asyncio.Event()
    works = [
        asyncio.create_task(run_dispatch(ports, stop, backoff=backoff)) for _ in range(processes)
    ]
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await asyncio.gather(*works)


async def wait_for_deliveries(
    ports: Ports, created: NewWebhook, count: int
) -> list[tuple[Delivery, list[PostResult]]]:
    """The webhook's deliveries, oldest first, once this many are no longer pending."""
    async with asyncio.timeout(30):
        while True:
            page = await webhooks.list_deliveries(ports, ADA, created.webhook.id, limit=10_000)
            done = [(d, [a.result for a in tried]) for d, tried in page.items]
            done = [delivery for delivery in done if delivery[0].state is not DeliveryState.PENDING]
            if len(done) >= count:
                return done[::-1]
            await ports.events.wait_for_new(0.01)


def verify(secret: str, request: WebhookRequest) -> None:
    """Verify a signature by the Standard Webhooks convention."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = request.headers["webhook-timestamp"]
    signed = f"{request.id}.{stamp}.".encode() + request.body
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert hmac.compare_digest(request.headers["webhook-signature"], f"v1,{mac}")
