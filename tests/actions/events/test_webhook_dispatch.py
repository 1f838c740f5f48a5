"""Webhook dispatch: every subscribed event is posted, signed and retried."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.support.stores import advance_clock
from tests.support.webhook_receiver import (
    ADA,
    BROKEN,
    OK,
    FakeWebhookSender,
    WebhookRequest,
    run_dispatcher,
    verify,
    wait_for_deliveries,
)

from carrel.actions.events import webhook_dispatch, webhooks
from carrel.actions.events.webhook_dispatch import (
    LEASE_MS,
    MAX_CONCURRENT_POSTS,
    enqueue_deliveries,
    run_dispatch,
)
from carrel.actions.events.webhooks import WebhookPatch
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.adapters.aes_vault import AesGcmVault
from carrel.core.access import Actor
from carrel.core.identifiers import Path
from carrel.core.webhooks import DeliveryState, PostResult
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

STRANGER = Actor("globex", "gus")
URL = "https://receiver.example/hook"


async def write(ports: Ports, path: str = "a.md", actor: Actor = ADA, **options: Any) -> None:
    await files.put(
        ports, (actor.scope,), Path(path), b"a secret text", actor, WriteOptions(**options)
    )


async def test_a_webhook_receives_its_events_signed_and_without_content(
    ports: Ports,
) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["workspace.updated", "run.completed"])
    async with run_dispatcher(ports):
        run = await runs.start(ports, ADA, RunRequest("w"))
        await write(ports, run=run.id)
        post = await receiver.next()
    verify(created.secret, post)
    assert post.url == URL
    assert post.headers["content-type"] == "application/json"
    assert post.payload["type"] == "workspace.updated"
    assert post.payload["data"] == {
        "path": "a.md",
        "version": 1,
        "eventId": post.payload["data"]["eventId"],
        "workspace": {"kind": "workspace", "name": "default"},
        "runId": run.id,
    }
    assert post.payload["timestamp"].endswith("Z")
    assert b"secret text" not in post.body
    assert receiver.requests.empty()
    [(delivery, attempts)] = await wait_for_deliveries(ports, created, 1)
    assert (delivery.state, delivery.attempts, attempts) == (DeliveryState.DELIVERED, 1, [OK])


async def test_webhooks_receive_events_of_their_own_tenant_only(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    for actor in (ADA, STRANGER):
        await webhooks.create(ports, actor, f"https://{actor.tenant}.example", ["*"])
    async with run_dispatcher(ports):
        await write(ports, "acme.md")
        await write(ports, "globex.md", STRANGER)
        posts = [await receiver.next(), await receiver.next()]
    received = {(post.url, post.payload["data"]["path"]) for post in posts}
    assert received == {
        ("https://acme.example", "acme.md"),
        ("https://globex.example", "globex.md"),
    }


async def test_a_first_webhook_receives_no_earlier_events(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    assert await webhooks.has_no_webhooks(ports)
    for _ in range(5):
        await write(ports, "old.md")
    await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports, "new.md")
        assert (await receiver.next()).payload["data"]["path"] == "new.md"
    assert receiver.requests.empty()


async def test_events_without_a_running_dispatcher_are_delivered_later(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    for number in range(600):
        await write(ports, f"{number}.md")
    async with run_dispatcher(ports):
        await wait_for_deliveries(ports, created, 600)
    received = {(await receiver.next()).payload["data"]["path"] for _ in range(600)}
    assert len(received) == 600
    assert receiver.requests.empty()


async def test_several_processes_deliver_each_event_once(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, processes=4):
        await asyncio.gather(*(write(ports, f"{number}.md") for number in range(100)))
        await wait_for_deliveries(ports, created, 100)
    posts = [receiver.requests.get_nowait() for _ in range(receiver.requests.qsize())]
    assert len(posts) == 100
    assert {post.payload["data"]["path"] for post in posts} == {f"{n}.md" for n in range(100)}
    assert len({post.payload["data"]["eventId"] for post in posts}) == 100


async def test_a_webhook_receives_all_events_from_its_creation(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    async with run_dispatcher(ports):
        for number in range(5):
            created = await webhooks.create(ports, ADA, f"https://{number}.example", ["*"])
            await write(ports, f"{number}.md")
            post = await receiver.next()
            assert (post.url, post.payload["data"]["path"]) == (
                f"https://{number}.example",
                f"{number}.md",
            )
            await wait_for_deliveries(ports, created, 1)
            await webhooks.delete(ports, ADA, created.webhook.id)


async def test_a_failing_receiver_is_retried_with_the_same_post(ports: Ports) -> None:
    answers = iter([BROKEN, PostResult(None, "no connection could be made"), PostResult(302), OK])

    async def answer(post: WebhookRequest) -> PostResult:
        advance_clock(ports, 2000)
        return next(answers)

    receiver = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports)
        [(delivery, attempts)] = await wait_for_deliveries(ports, created, 1)
    posts = [await receiver.next() for _ in range(4)]
    assert len({(post.id, post.body) for post in posts}) == 1
    assert len({post.headers["webhook-timestamp"] for post in posts}) == 4
    for post in posts:
        verify(created.secret, post)
    assert [posted.status for posted in attempts] == [503, None, 302, 200]
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 4)


async def test_a_receiver_that_never_recovers_fails_and_can_be_replayed(
    ports: Ports,
) -> None:
    works = asyncio.Event()

    async def answer(post: WebhookRequest) -> PostResult:
        return OK if works.is_set() else BROKEN

    ports = replace(ports, webhook_sender=FakeWebhookSender(answer))
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, backoff=(0, 0)):
        await write(ports)
        [(failed, attempts)] = await wait_for_deliveries(ports, created, 1)
        assert (failed.state, failed.attempts, attempts) == (DeliveryState.FAILED, 3, [BROKEN] * 3)
        works.set()
        await webhooks.replay(ports, ADA, created.webhook.id, failed.id)
        [(delivered, attempts)] = await wait_for_deliveries(ports, created, 1)
    assert (delivered.state, delivered.attempts) == (DeliveryState.DELIVERED, 1)
    assert attempts == [BROKEN, BROKEN, BROKEN, OK]


async def test_a_failed_attempt_is_retried_after_its_backoff(ports: Ports) -> None:
    async def answer(post: WebhookRequest) -> PostResult:
        return BROKEN

    receiver = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, backoff=(3600,)):
        await write(ports)
        await receiver.next()
        async with asyncio.timeout(30):
            while True:
                [(waiting, attempts)] = (
                    await webhooks.list_deliveries(ports, ADA, created.webhook.id)
                ).items
                if attempts:
                    break
                await ports.events.wait_for_new(0.01)
        assert waiting.state is DeliveryState.PENDING
        assert waiting.due_at == pytest.approx(ports.clock.now() + 3_600_000, abs=10_000)
        assert receiver.requests.empty()
        advance_clock(ports, 3_601_000)
        await receiver.next()


@pytest.mark.parametrize("change", ["was removed", "is inactive"])
async def test_a_delivery_to_a_removed_webhook_fails_with_the_reason(
    ports: Ports, change: str
) -> None:
    receiver = FakeWebhookSender()
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    await write(ports)
    await enqueue_deliveries(ports)
    id = created.webhook.id
    [(waiting, _)] = (await webhooks.list_deliveries(ports, ADA, id)).items
    if change == "was removed":
        await webhooks.delete(ports, ADA, id)
    else:
        await webhooks.update(ports, ADA, id, WebhookPatch(active=False))
        await write(ports, "not even written down.md")
    async with run_dispatcher(ports):
        async with asyncio.timeout(30):
            while True:
                listed = await ports.deliveries.list("acme", id)
                if listed[0][1]:
                    break
                await ports.events.wait_for_new(0.01)
    [(failed, [attempt])] = listed
    assert failed == structs.replace(
        waiting, state=DeliveryState.FAILED, attempts=1, due_at=failed.due_at
    )
    assert attempt.result == PostResult(None, f"the webhook {change}")
    assert receiver.requests.empty()


async def test_a_webhook_secret_that_cannot_be_opened_is_a_failed_delivery(ports: Ports) -> None:
    receiver = FakeWebhookSender()
    created = await webhooks.create(ports, ADA, URL, ["*"])
    other_vault = replace(
        ports, webhook_sender=receiver, vault=AesGcmVault(b"another key of thirty-two bytes!")
    )
    async with run_dispatcher(other_vault, backoff=()):
        await write(ports)
        [(failed, [posted])] = await wait_for_deliveries(ports, created, 1)
    assert failed.state is DeliveryState.FAILED
    assert "cannot be opened" in posted.problem
    assert receiver.requests.empty()


async def test_posts_are_limited_in_number_and_a_slow_one_delays_no_other(
    ports: Ports,
) -> None:
    slow, gate, open_posts = asyncio.Event(), asyncio.Event(), 0
    max_open = 0

    async def answer(post: WebhookRequest) -> PostResult:
        nonlocal open_posts, max_open
        open_posts += 1
        max_open = max(max_open, open_posts)
        await (slow if post.payload["data"]["path"] == "0.md" else gate).wait()
        open_posts -= 1
        return OK

    receiver = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        for number in range(3 * MAX_CONCURRENT_POSTS):
            await write(ports, f"{number}.md")
        for _ in range(MAX_CONCURRENT_POSTS):
            await receiver.next()
        gate.set()
        await wait_for_deliveries(ports, created, 3 * MAX_CONCURRENT_POSTS - 1)
        slow.set()
        await wait_for_deliveries(ports, created, 3 * MAX_CONCURRENT_POSTS)
    assert max_open == MAX_CONCURRENT_POSTS


async def test_a_shutdown_does_not_wait_for_a_hanging_receiver_and_another_process_takes_over(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_SHUTDOWN_SECONDS", 0.01)
    hangs = True

    async def answer(post: WebhookRequest) -> PostResult:
        if hangs:
            await asyncio.Event().wait()
        return OK

    receiver = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=receiver)
    created = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports)
        first = await receiver.next()
    hangs = False
    async with run_dispatcher(ports):
        await write(ports, "meanwhile.md")
        assert (await receiver.next()).payload["data"]["path"] == "meanwhile.md"
        advance_clock(ports, LEASE_MS + 1000)
        again = await receiver.next()
        await wait_for_deliveries(ports, created, 2)
    assert (again.id, again.body) == (first.id, first.body)


class FlakyPort:
    """A port whose store is unavailable on demand."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.unavailable = True
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if self.unavailable:
            self.failed.set()
            raise OSError("the store is unavailable")
        return getattr(self._port, name)


@pytest.mark.parametrize("port", ["deliveries", "events", "records"])
async def test_an_outage_of_the_store_delays_deliveries_and_loses_none(
    ports: Ports, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_RETRY_SECONDS", 0.01)
    receiver = FakeWebhookSender()
    created = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    flaky = FlakyPort(getattr(ports, port))
    replaced: dict[str, Any] = {"webhook_sender": receiver, port: flaky}
    flaky_ports = replace(ports, **replaced)
    stop = asyncio.Event()
    work = asyncio.create_task(run_dispatch(flaky_ports, stop))
    await write(ports)
    await flaky.failed.wait()
    flaky.unavailable = False
    assert (await receiver.next()).payload["data"]["path"] == "a.md"
    await wait_for_deliveries(ports, created, 1)
    stop.set()
    async with asyncio.timeout(30):
        await work


async def test_an_idle_dispatcher_stops_promptly(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_POLL_SECONDS", 1000.0)
    before = asyncio.all_tasks()
    loop = asyncio.get_running_loop()
    async with run_dispatcher(ports, processes=3):
        for _ in range(100):  # until they have started and are idle
            await asyncio.sleep(0)
        began = loop.time()
    assert loop.time() - began < 30
    assert asyncio.all_tasks() == before
