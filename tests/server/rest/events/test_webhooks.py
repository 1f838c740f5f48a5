"""Webhooks over REST: access, representation and delivery."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, create_rest_app, open_full_app
from tests.support.http_sink import receiver
from tests.support.server_process import serving

from carrel.actions.events.webhook_dispatch import enqueue_deliveries, run_dispatch
from carrel.adapters.webhook_transport import HttpWebhookSender
from carrel.core.access import Permission
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOOKS = "/v1/webhooks"
URL = "https://receiver.example/hook"
WEBHOOK = {"url": URL, "events": ["workspace.updated"]}


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


async def create_webhook(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(HOOKS, json={**WEBHOOK, **body})
    assert answer.status_code == 201, answer.text
    webhook: dict[str, Any] = answer.json()
    return webhook


async def test_a_webhook_returns_its_secret_only_at_creation(ada: httpx.AsyncClient) -> None:
    webhook = await create_webhook(ada)
    secret = webhook.pop("secret")
    assert secret.startswith("whsec_")
    url = f"{HOOKS}/{webhook['id']}"
    fetched = await ada.get(url)
    assert fetched.json() == webhook
    assert (webhook["url"], webhook["events"], webhook["active"]) == (
        URL,
        ["workspace.updated"],
        True,
    )
    assert webhook["createdAt"] == webhook["updatedAt"]
    patched = await ada.patch(url, json={"events": ["*"], "active": False})
    assert patched.json() == {
        **webhook,
        "events": ["*"],
        "active": False,
        "updatedAt": patched.json()["updatedAt"],
    }
    listed = await ada.get(HOOKS)
    assert listed.json() == {"items": [patched.json()], "next": None, "total": 1}
    for answer in (fetched, patched, listed):
        assert secret.removeprefix("whsec_") not in answer.text
        assert "sealed" not in answer.text
    assert (await ada.delete(url)).status_code == 204
    for gone in (ada.get(url), ada.delete(url), ada.get(f"{url}/deliveries")):
        assert (await gone).status_code == 404


async def test_a_repeated_create_makes_one_webhook_and_replays_its_secret(
    ada: httpx.AsyncClient,
) -> None:
    once = {"Idempotency-Key": "k"}
    first = await ada.post(HOOKS, json=WEBHOOK, headers=once)
    again = await ada.post(HOOKS, json=WEBHOOK, headers=once)
    assert first.json() == again.json()
    assert len((await ada.get(HOOKS)).json()["items"]) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        *({"url": ""}, {"url": "ftp://x"}, {"url": None}, {"url": "https://x\x00"}, {"url": 7}),
        *({"events": []}, {"events": ["x"]}, {"events": "*"}, {"events": ["*"] * 21}),
        *({"secret": "x"}, {"secret": "whsec_" + "A" * 200}, {"active": True}, {"tenant": "x"}),
    ],
    ids=str,
)
async def test_an_invalid_webhook_is_400(ada: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    answer = await ada.post(HOOKS, json={**WEBHOOK, **wrong})
    assert answer.status_code == 400, answer.text
    assert (await ada.get(HOOKS)).json()["items"] == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8787/v1", "http://169.254.169.254/latest", "http://[::1]/", "http://0"],
)
async def test_a_private_address_is_refused_with_the_reason(
    server: FullApp, ada: httpx.AsyncClient, url: str
) -> None:
    async with HttpWebhookSender() as post:
        careful = FullApp(server.ports, create_rest_app(replace(server.ports, webhook_sender=post)))
        client = careful.as_(ada.headers["Authorization"].partition(" ")[2])
        answer = await client.post(HOOKS, json={**WEBHOOK, "url": url})
    assert answer.status_code == 400
    assert "not public" in answer.json()["message"]


async def test_webhooks_need_tenant_admin(server: FullApp, ada: httpx.AsyncClient) -> None:
    id = (await create_webhook(ada))["id"]
    rest = f"{HOOKS}/{id}"
    routes = [
        *(("GET", HOOKS), ("POST", HOOKS), ("GET", rest), ("PATCH", rest), ("DELETE", rest)),
        *(("GET", f"{rest}/deliveries"), ("POST", f"{rest}/deliveries/msg_1/replay")),
    ]
    reader = await server.key(ada, Permission.TENANT_READ, Permission.EVENTS_READ)
    confined = await server.key(ada, workspace="attic")
    other_owner = await server.owner("globex")
    for method, path in routes:
        body = json.dumps(WEBHOOK if (method, path) == ("POST", HOOKS) else {}).encode()
        for client in (reader, confined):
            assert (await client.request(method, path, content=body)).status_code == 403
        assert (await server.as_(None).request(method, path, content=body)).status_code == 401
        if path != HOOKS:
            assert (await other_owner.request(method, path, content=body)).status_code == 404
    assert (await other_owner.get(HOOKS)).json()["items"] == []
    assert (await ada.get(rest)).status_code == 200


async def test_deliveries_are_inspected_and_replayed(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await enqueue_deliveries(server.ports)
    id = (await create_webhook(ada))["id"]
    await ada.put(f"{FILES}/a.md", json={"content": "a text that is never sent"})
    url = f"{HOOKS}/{id}/deliveries"
    stop = asyncio.Event()
    work = asyncio.create_task(run_dispatch(server.ports, stop, backoff=()))
    failed = await _wait_for_delivery(ada, url, 1, server.ports)
    [attempt] = failed["attempts"]
    assert (failed["state"], failed["type"], failed["tries"]) == ("failed", "workspace.updated", 1)
    assert (attempt["status"], attempt["problem"]) == (None, "there is no network here")
    assert failed["payload"]["data"]["path"] == "a.md"
    assert "never sent" not in json.dumps(failed)
    again = await ada.post(f"{url}/{failed['id']}/replay")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    twice = await _wait_for_delivery(ada, url, 2, server.ports)
    stop.set()
    await work
    assert (twice["id"], len(twice["attempts"])) == (failed["id"], 2)
    assert (await ada.post(f"{url}/msg_none/replay")).status_code == 404
    other = (await create_webhook(ada))["id"]
    wrong = f"{HOOKS}/{other}/deliveries/{failed['id']}/replay"
    assert (await ada.post(wrong)).status_code == 404
    for cursor in ("%00", "zzz"):
        assert (await ada.get(f"{url}?cursor={cursor}")).status_code == 400
        assert (await ada.get(f"/v1/webhooks?cursor={cursor}")).status_code == 400


async def _wait_for_delivery(
    client: httpx.AsyncClient, url: str, tries: int, ports: Ports | None = None
) -> dict[str, Any]:
    """Wait until the delivery has this many attempts and is not pending."""
    async with asyncio.timeout(30):
        while True:
            items = (await client.get(url)).json()["items"]
            if items and len(items[0]["attempts"]) >= tries and items[0]["state"] != "pending":
                delivery: dict[str, Any] = items[0]
                return delivery
            if ports is not None:
                await ports.events.wait_for_new(0.01)


async def test_a_live_server_signs_deliveries_and_retries(tmp_path: File) -> None:
    with serving(tmp_path, webhooks_private="true", webhook_backoff="0,0,0") as live:
        async with receiver([500, 503]) as (url, requests), live.http() as ada:
            webhook = await create_webhook(ada, url=url, events=["*"])
            await ada.put(f"{FILES}/a.md", json={"content": "x"})
            async with asyncio.timeout(30):
                received = [await requests.get() for _ in range(3)]
            delivery = await _wait_for_delivery(ada, f"{HOOKS}/{webhook['id']}/deliveries", 3)
    key = base64.b64decode(webhook["secret"].removeprefix("whsec_"))
    for headers, body in received:
        id, stamp = headers["webhook-id"], headers["webhook-timestamp"]
        mac = hmac.new(key, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
        assert id == delivery["id"]
        assert json.loads(body) == delivery["payload"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500, 503, 200]
    assert delivery["state"] == "delivered"
    assert requests.empty()
