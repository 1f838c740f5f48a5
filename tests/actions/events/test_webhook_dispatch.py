"""Every event reaches every webhook that wants it: signed, once where all goes well, retried."""

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
from carrel.actions.runs.runs import RunRequest
from carrel.adapters.aes_vault import AesGcmVault
from carrel.core.access import Actor
from carrel.core.identifiers import Path
from carrel.core.webhooks import DeliveryState, PostResult
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

STRANGER = Actor("globex", "gus")
URL = "https://receiver.example/hook"


async def write(ports: Ports, path: str = "a.md", actor: Actor = ADA, **more: Any) -> None:
    await files.put(
        ports, (actor.scope,), Path(path), b"a secret text", actor, WriteOptions(**more)
    )


async def test_a_webhook_is_told_of_what_it_wants_signed_and_without_content(
    ports: Ports,
) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["workspace.updated", "run.completed"])
    async with run_dispatcher(ports):
        run = await runs.start(ports, ADA, RunRequest("w"))
        await write(ports, run=run.id)
        letter = await box.next()
    verify(made.secret, letter)
    assert letter.url == URL
    assert letter.headers["content-type"] == "application/json"
    assert letter.payload["type"] == "workspace.updated"
    assert letter.payload["data"] == {
        "path": "a.md",
        "version": 1,
        "eventId": letter.payload["data"]["eventId"],
        "workspace": {"kind": "workspace", "name": "default"},
        "runId": run.id,
    }
    assert letter.payload["timestamp"].endswith("Z")
    assert b"secret text" not in letter.body
    assert box.requests.empty()
    [(delivery, attempts)] = await wait_for_deliveries(ports, made, 1)
    assert (delivery.state, delivery.attempts, attempts) == (DeliveryState.DELIVERED, 1, [OK])


async def test_everyone_hears_of_their_own_tenant_only(ports: Ports) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    for actor in (ADA, STRANGER):
        await webhooks.create(ports, actor, f"https://{actor.tenant}.example", ["*"])
    async with run_dispatcher(ports):
        await write(ports, "acme.md")
        await write(ports, "globex.md", STRANGER)
        letters = [await box.next(), await box.next()]
    told = {(letter.url, letter.payload["data"]["path"]) for letter in letters}
    assert told == {("https://acme.example", "acme.md"), ("https://globex.example", "globex.md")}


async def test_the_first_webhook_hears_nothing_of_what_came_before_it(ports: Ports) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    assert await webhooks.has_no_webhooks(ports)
    for _ in range(5):
        await write(ports, "old.md")
    await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports, "new.md")
        assert (await box.next()).payload["data"]["path"] == "new.md"
    assert box.requests.empty()


async def test_what_happened_while_nobody_dispatched_is_told_later(ports: Ports) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    for number in range(600):
        await write(ports, f"{number}.md")
    async with run_dispatcher(ports):
        await wait_for_deliveries(ports, made, 600)
    told = {(await box.next()).payload["data"]["path"] for _ in range(600)}
    assert len(told) == 600
    assert box.requests.empty()


async def test_several_processes_tell_nothing_twice(ports: Ports) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, processes=4):
        await asyncio.gather(*(write(ports, f"{number}.md") for number in range(100)))
        await wait_for_deliveries(ports, made, 100)
    letters = [box.requests.get_nowait() for _ in range(box.requests.qsize())]
    assert len(letters) == 100
    assert {letter.payload["data"]["path"] for letter in letters} == {f"{n}.md" for n in range(100)}
    assert len({letter.payload["data"]["eventId"] for letter in letters}) == 100


async def test_a_webhook_hears_of_everything_from_the_moment_it_is_there(ports: Ports) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    async with run_dispatcher(ports):
        for number in range(5):
            made = await webhooks.create(ports, ADA, f"https://{number}.example", ["*"])
            await write(ports, f"{number}.md")
            letter = await box.next()
            assert (letter.url, letter.payload["data"]["path"]) == (
                f"https://{number}.example",
                f"{number}.md",
            )
            await wait_for_deliveries(ports, made, 1)
            await webhooks.delete(ports, ADA, made.webhook.id)


async def test_a_receiver_that_fails_is_tried_again_with_the_same_letter(ports: Ports) -> None:
    answers = iter([BROKEN, PostResult(None, "no connection could be made"), PostResult(302), OK])

    async def answer(letter: WebhookRequest) -> PostResult:
        advance_clock(ports, 2000)
        return next(answers)

    box = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports)
        [(delivery, attempts)] = await wait_for_deliveries(ports, made, 1)
    letters = [await box.next() for _ in range(4)]
    assert len({(letter.id, letter.body) for letter in letters}) == 1
    assert len({letter.headers["webhook-timestamp"] for letter in letters}) == 4
    for letter in letters:
        verify(made.secret, letter)
    assert [posted.status for posted in attempts] == [503, None, 302, 200]
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 4)


async def test_a_receiver_that_never_recovers_is_given_up_and_can_be_replayed(
    ports: Ports,
) -> None:
    works = asyncio.Event()

    async def answer(letter: WebhookRequest) -> PostResult:
        return OK if works.is_set() else BROKEN

    ports = replace(ports, webhook_sender=FakeWebhookSender(answer))
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, backoff=(0, 0)):
        await write(ports)
        [(failed, attempts)] = await wait_for_deliveries(ports, made, 1)
        assert (failed.state, failed.attempts, attempts) == (DeliveryState.FAILED, 3, [BROKEN] * 3)
        works.set()
        await webhooks.replay(ports, ADA, made.webhook.id, failed.id)
        [(delivered, attempts)] = await wait_for_deliveries(ports, made, 1)
    assert (delivered.state, delivered.attempts) == (DeliveryState.DELIVERED, 1)
    assert attempts == [BROKEN, BROKEN, BROKEN, OK]


async def test_a_failed_attempt_waits_as_long_as_the_backoff_says(ports: Ports) -> None:
    async def answer(letter: WebhookRequest) -> PostResult:
        return BROKEN

    box = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports, backoff=(3600,)):
        await write(ports)
        await box.next()
        async with asyncio.timeout(30):
            while True:
                [(waiting, tried)] = (
                    await webhooks.list_deliveries(ports, ADA, made.webhook.id)
                ).items
                if tried:
                    break
                await ports.events.wait_for_new(0.01)
        assert waiting.state is DeliveryState.PENDING
        assert waiting.due_at == pytest.approx(ports.clock.now() + 3_600_000, abs=10_000)
        assert box.requests.empty()
        advance_clock(ports, 3_601_000)
        await box.next()


@pytest.mark.parametrize("way", ["removed", "switched off"])
async def test_what_was_meant_for_a_webhook_that_is_gone_fails_and_says_why(
    ports: Ports, way: str
) -> None:
    box = FakeWebhookSender()
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    await write(ports)
    await enqueue_deliveries(ports)
    id = made.webhook.id
    [(waiting, _)] = (await webhooks.list_deliveries(ports, ADA, id)).items
    if way == "removed":
        await webhooks.delete(ports, ADA, id)
    else:
        await webhooks.update(ports, ADA, id, WebhookPatch(active=False))
        await write(ports, "not even written down.md")
    async with run_dispatcher(ports):
        async with asyncio.timeout(30):
            while True:
                found = await ports.deliveries.list("acme", id)
                if found[0][1]:
                    break
                await ports.events.wait_for_new(0.01)
    [(failed, [attempt])] = found
    assert failed == structs.replace(
        waiting, state=DeliveryState.FAILED, attempts=1, due_at=failed.due_at
    )
    assert attempt.result == PostResult(None, f"the webhook was {way}")
    assert box.requests.empty()


async def test_a_secret_that_cannot_be_opened_is_a_failure_like_others(ports: Ports) -> None:
    box = FakeWebhookSender()
    made = await webhooks.create(ports, ADA, URL, ["*"])
    locked = replace(
        ports, webhook_sender=box, vault=AesGcmVault(b"another key of thirty-two bytes!")
    )
    async with run_dispatcher(locked, backoff=()):
        await write(ports)
        [(failed, [posted])] = await wait_for_deliveries(ports, made, 1)
    assert failed.state is DeliveryState.FAILED
    assert "cannot be opened" in posted.problem
    assert box.requests.empty()


async def test_no_more_than_so_many_are_posted_at_once_and_a_slow_one_holds_up_no_other(
    ports: Ports,
) -> None:
    slow, gate, out = asyncio.Event(), asyncio.Event(), 0
    most = 0

    async def answer(letter: WebhookRequest) -> PostResult:
        nonlocal out, most
        out += 1
        most = max(most, out)
        await (slow if letter.payload["data"]["path"] == "0.md" else gate).wait()
        out -= 1
        return OK

    box = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        for number in range(3 * MAX_CONCURRENT_POSTS):
            await write(ports, f"{number}.md")
        for _ in range(MAX_CONCURRENT_POSTS):
            await box.next()
        gate.set()
        await wait_for_deliveries(ports, made, 3 * MAX_CONCURRENT_POSTS - 1)
        slow.set()
        await wait_for_deliveries(ports, made, 3 * MAX_CONCURRENT_POSTS)
    assert most == MAX_CONCURRENT_POSTS


async def test_stopping_does_not_wait_for_a_receiver_that_hangs_and_another_takes_over(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_SHUTDOWN_SECONDS", 0.01)
    hangs = True

    async def answer(letter: WebhookRequest) -> PostResult:
        if hangs:
            await asyncio.Event().wait()
        return OK

    box = FakeWebhookSender(answer)
    ports = replace(ports, webhook_sender=box)
    made = await webhooks.create(ports, ADA, URL, ["*"])
    async with run_dispatcher(ports):
        await write(ports)
        first = await box.next()
    hangs = False
    async with run_dispatcher(ports):
        await write(ports, "meanwhile.md")
        assert (await box.next()).payload["data"]["path"] == "meanwhile.md"
        advance_clock(ports, LEASE_MS + 1000)
        again = await box.next()
        await wait_for_deliveries(ports, made, 2)
    assert (again.id, again.body) == (first.id, first.body)


class Flaky:
    """A port whose store is away for a while."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.away = True
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if self.away:
            self.failed.set()
            raise OSError("the store is away")
        return getattr(self._port, name)


@pytest.mark.parametrize("port", ["deliveries", "events", "records"])
async def test_an_outage_of_the_store_delays_and_loses_nothing(
    ports: Ports, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_RETRY_SECONDS", 0.01)
    box = FakeWebhookSender()
    made = await webhooks.create(ports, ADA, URL, ["*"])
    await enqueue_deliveries(ports)
    flaky = Flaky(getattr(ports, port))
    replaced: dict[str, Any] = {"webhook_sender": box, port: flaky}
    torn = replace(ports, **replaced)
    stop = asyncio.Event()
    work = asyncio.create_task(run_dispatch(torn, stop))
    await write(ports)
    await flaky.failed.wait()
    flaky.away = False
    assert (await box.next()).payload["data"]["path"] == "a.md"
    await wait_for_deliveries(ports, made, 1)
    stop.set()
    async with asyncio.timeout(30):
        await work


async def test_it_stops_promptly_when_there_is_nothing_to_do(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_dispatch, "_POLL_SECONDS", 1000.0)
    before = asyncio.all_tasks()
    loop = asyncio.get_running_loop()
    async with run_dispatcher(ports, processes=3):
        for _ in range(100):  # until they have begun, and found nothing
            await asyncio.sleep(0)
        began = loop.time()
    assert loop.time() - began < 30
    assert asyncio.all_tasks() == before
