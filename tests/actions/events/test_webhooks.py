"""Webhooks: address, event types, and a secret returned once."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec import structs

from carrel.actions.accounts import audit
from carrel.actions.events import webhooks
from carrel.actions.events.webhook_dispatch import enqueue_deliveries
from carrel.actions.events.webhooks import WebhookPatch
from carrel.actions.files import files
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.webhooks import DeliveryAttempt, DeliveryState, PostResult
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA, STRANGER = Actor("acme", "ada"), Actor("globex", "gus")
URL = "https://receiver.example/hook?x=1"
EVENTS = ["workspace.updated"]


async def test_a_webhook_is_stored_and_its_secret_returned_once(ports: Ports) -> None:
    created = await webhooks.create(ports, ADA, URL, EVENTS)
    assert created.secret.startswith("whsec_")
    assert len(base64.b64decode(created.secret.removeprefix("whsec_"))) == 32
    stored = await webhooks.get(ports, ADA, created.webhook.id)
    assert stored == created.webhook
    assert (stored.body["url"], stored.body["events"], stored.body["active"]) == (URL, EVENTS, True)
    key = created.secret.removeprefix("whsec_")
    assert key not in str(stored.body)
    assert webhooks.open_secret(ports, stored) == base64.b64decode(key)
    other = await webhooks.create(ports, ADA, URL, EVENTS)
    assert other.secret != created.secret


async def test_a_secret_may_be_supplied(ports: Ports) -> None:
    for size in (24, 64):
        secret = "whsec_" + base64.b64encode(bytes(range(size))).decode()
        created = await webhooks.create(ports, ADA, URL, ["*"], secret=secret)
        assert created.secret == secret
        assert webhooks.open_secret(ports, created.webhook) == bytes(range(size))


SHORT, LONG = (base64.b64encode(bytes(size)).decode() for size in (23, 65))


@pytest.mark.parametrize(
    "secret",
    ["x", "whsec_", "whsec_!!!!", f"whsec_{SHORT}", f"whsec_{LONG}", LONG, "whsec_é", "\x00" * 40],
)
async def test_an_invalid_secret_is_refused_and_not_repeated(ports: Ports, secret: str) -> None:
    with pytest.raises(ValidationError) as refused:
        await webhooks.create(ports, ADA, URL, EVENTS, secret=secret)
    assert secret not in str(refused.value) or len(secret) < 8


@pytest.mark.parametrize(
    "url",
    [
        *("", "receiver.example", "ftp://receiver.example", "file:///etc/passwd"),
        *("javascript:alert(1)", "https://", "https://a b", "https://a\nb", "https://a\x00"),
        *("https://é.example", "https://x/\ud800", "https://x/" + "y" * 2048),
    ],
    ids=ascii,
)
async def test_only_http_urls_are_accepted(ports: Ports, url: str) -> None:
    with pytest.raises(ValidationError):
        await webhooks.create(ports, ADA, url, EVENTS)
    created = await webhooks.create(ports, ADA, URL, EVENTS)
    with pytest.raises(ValidationError):
        await webhooks.update(ports, ADA, created.webhook.id, WebhookPatch(url=url))


@pytest.mark.parametrize("events", [[], ["workspace"], ["workspace.updated", "x"], ["run.*"]])
async def test_unknown_event_types_are_refused(ports: Ports, events: list[str]) -> None:
    with pytest.raises(ValidationError):
        await webhooks.create(ports, ADA, URL, events)


class RefusingSender:
    """A webhook sender that refuses private addresses."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return PostResult(None, "refused")

    async def refusal_reason(self, url: str) -> str | None:
        return "it is private" if "private" in url else None


async def test_a_url_that_the_sender_refuses_is_refused_with_the_reason(
    ports: Ports,
) -> None:
    refusing = replace(ports, webhook_sender=RefusingSender())
    with pytest.raises(ValidationError, match="it is private"):
        await webhooks.create(refusing, ADA, "http://private.example", EVENTS)
    created = await webhooks.create(refusing, ADA, URL, EVENTS)
    with pytest.raises(ValidationError, match="it is private"):
        await webhooks.update(
            refusing, ADA, created.webhook.id, WebhookPatch("http://private.example")
        )


async def test_an_update_changes_only_the_patched_fields(ports: Ports) -> None:
    created = await webhooks.create(ports, ADA, URL, EVENTS)
    id = created.webhook.id
    await webhooks.update(ports, ADA, id, WebhookPatch(active=False))
    await webhooks.update(ports, ADA, id, WebhookPatch(events=["*", "*"]))
    changed = await webhooks.update(ports, ADA, id, WebhookPatch(url="http://other.example"))
    assert changed == await webhooks.get(ports, ADA, id)
    assert changed.body == {
        **created.webhook.body,
        "url": "http://other.example",
        "events": ["*"],
        "active": False,
    }
    await webhooks.delete(ports, ADA, id)
    for attempt in (webhooks.get(ports, ADA, id), webhooks.delete(ports, ADA, id)):
        with pytest.raises(NotFound):
            await attempt
    entries = [entry.reason for entry in (await audit.list_audit_entries(ports, ADA)).items]
    assert entries == ["remove a webhook", *["change a webhook"] * 3, "add a webhook"]


async def test_webhooks_are_listed_in_pages_and_only_to_their_tenant(ports: Ports) -> None:
    created = [(await webhooks.create(ports, ADA, URL, EVENTS)).webhook for _ in range(3)]
    first = await webhooks.list_webhooks(ports, ADA, limit=2)
    rest = await webhooks.list_webhooks(ports, ADA, limit=2, cursor=first.next or "")
    assert [*first.items, *rest.items] == created
    assert rest.next is None
    assert (await webhooks.list_webhooks(ports, STRANGER)).items == ()
    id = created[0].id
    for attempt in (
        webhooks.get(ports, STRANGER, id),
        webhooks.update(ports, STRANGER, id, WebhookPatch(active=False)),
        webhooks.delete(ports, STRANGER, id),
        webhooks.list_deliveries(ports, STRANGER, id),
        webhooks.replay(ports, STRANGER, id, "msg_1"),
        webhooks.get(ports, ADA, "\x00"),
    ):
        with pytest.raises(NotFound):
            await attempt


async def test_a_caller_confined_to_a_workspace_has_no_webhooks(ports: Ports) -> None:
    id = (await webhooks.create(ports, ADA, URL, EVENTS)).webhook.id
    confined = Actor("acme", "key_1", workspace="default")
    for attempt in (
        webhooks.create(ports, confined, URL, EVENTS),
        webhooks.get(ports, confined, id),
        webhooks.list_webhooks(ports, confined),
        webhooks.update(ports, confined, id, WebhookPatch(active=False)),
        webhooks.delete(ports, confined, id),
        webhooks.list_deliveries(ports, confined, id),
        webhooks.replay(ports, confined, id, "msg_1"),
    ):
        with pytest.raises(Forbidden):
            await attempt


async def test_deliveries_are_listed_with_their_attempts_and_can_be_replayed(
    ports: Ports,
) -> None:
    await enqueue_deliveries(ports)
    id = (await webhooks.create(ports, ADA, URL, EVENTS)).webhook.id
    other = (await webhooks.create(ports, ADA, URL, ["run.started"])).webhook.id
    for number in range(3):
        await files.put(ports, (ADA.scope,), Path(f"{number}.md"), b"x", ADA)
    await enqueue_deliveries(ports)
    first = await webhooks.list_deliveries(ports, ADA, id, limit=2)
    rest = await webhooks.list_deliveries(ports, ADA, id, limit=2, cursor=first.next or "")
    assert (first.total, rest.total) == (3, None)
    deliveries = [delivery for delivery, _ in (*first.items, *rest.items)]
    assert len(deliveries) == 3
    assert [delivery.id for delivery in deliveries] == sorted(
        (d.id for d in deliveries), reverse=True
    )
    assert (await webhooks.list_deliveries(ports, ADA, other)).items == ()

    failed = structs.replace(deliveries[0], state=DeliveryState.FAILED, attempts=8)
    attempt = DeliveryAttempt(ports.clock.now(), PostResult(500, "", 7))
    await ports.deliveries.record_attempts([(failed, attempt)])
    again = await webhooks.replay(ports, ADA, id, failed.id)
    assert (again.state, again.attempts, again.body) == (DeliveryState.PENDING, 0, failed.body)
    assert again.due_at <= ports.clock.now()
    [(listed, attempts), _, _] = (await webhooks.list_deliveries(ports, ADA, id)).items
    assert (listed, attempts) == (again, (attempt,))
    for webhook, delivery in ((other, failed.id), (id, "msg_none"), (id, "\x00")):
        with pytest.raises(NotFound):
            await webhooks.replay(ports, ADA, webhook, delivery)
