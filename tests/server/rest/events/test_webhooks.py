"""Webhooks through the wire: who may have them, what is shown, and what reaches a receiver."""

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
from carrel.adapters.http_webhooks import HttpWebhookSender
from carrel.core.access import Permission
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOOKS = "/v1/webhooks"
URL = "https://receiver.example/hook"
WANTED = {"url": URL, "events": ["workspace.updated"]}


@pytest.fixture
async def here(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(here: FullApp) -> httpx.AsyncClient:
    return await here.owner()


async def made(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(HOOKS, json={**WANTED, **body})
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_webhook_is_shown_as_it_is_and_its_secret_once(ada: httpx.AsyncClient) -> None:
    told = await made(ada)
    secret = told.pop("secret")
    assert secret.startswith("whsec_")
    place = f"{HOOKS}/{told['id']}"
    shown = await ada.get(place)
    assert shown.json() == told
    assert (told["url"], told["events"], told["active"]) == (URL, ["workspace.updated"], True)
    assert told["createdAt"] == told["updatedAt"]
    patched = await ada.patch(place, json={"events": ["*"], "active": False})
    assert patched.json() == {
        **told,
        "events": ["*"],
        "active": False,
        "updatedAt": patched.json()["updatedAt"],
    }
    listed = await ada.get(HOOKS)
    assert listed.json() == {"items": [patched.json()], "next": None}
    for answer in (shown, patched, listed):
        assert secret.removeprefix("whsec_") not in answer.text
        assert "sealed" not in answer.text
    assert (await ada.delete(place)).status_code == 204
    for gone in (ada.get(place), ada.delete(place), ada.get(f"{place}/deliveries")):
        assert (await gone).status_code == 404


async def test_the_same_request_sent_twice_makes_one_webhook_and_shows_its_secret_again(
    ada: httpx.AsyncClient,
) -> None:
    once = {"Idempotency-Key": "k"}
    first = await ada.post(HOOKS, json=WANTED, headers=once)
    again = await ada.post(HOOKS, json=WANTED, headers=once)
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
async def test_what_makes_no_webhook_is_refused(
    ada: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    answer = await ada.post(HOOKS, json={**WANTED, **wrong})
    assert answer.status_code == 400, answer.text
    assert (await ada.get(HOOKS)).json()["items"] == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8787/v1", "http://169.254.169.254/latest", "http://[::1]/", "http://0"],
)
async def test_an_address_within_is_refused_with_the_reason(
    here: FullApp, ada: httpx.AsyncClient, url: str
) -> None:
    async with HttpWebhookSender() as post:
        careful = FullApp(here.ports, create_rest_app(replace(here.ports, webhook_sender=post)))
        client = careful.as_(ada.headers["Authorization"].partition(" ")[2])
        answer = await client.post(HOOKS, json={**WANTED, "url": url})
    assert answer.status_code == 400
    assert "not public" in answer.json()["message"]


async def test_webhooks_are_for_administrators_of_the_whole_tenant(
    here: FullApp, ada: httpx.AsyncClient
) -> None:
    id = (await made(ada))["id"]
    rest = f"{HOOKS}/{id}"
    asked = [
        *(("GET", HOOKS), ("POST", HOOKS), ("GET", rest), ("PATCH", rest), ("DELETE", rest)),
        *(("GET", f"{rest}/deliveries"), ("POST", f"{rest}/deliveries/msg_1/replay")),
    ]
    reader = await here.key(ada, Permission.TENANT_READ, Permission.EVENTS_READ)
    confined = await here.key(ada, workspace="attic")
    stranger = await here.owner("globex")
    for method, path in asked:
        body = json.dumps(WANTED if (method, path) == ("POST", HOOKS) else {}).encode()
        for client in (reader, confined):
            assert (await client.request(method, path, content=body)).status_code == 403
        assert (await here.as_(None).request(method, path, content=body)).status_code == 401
        if path != HOOKS:
            assert (await stranger.request(method, path, content=body)).status_code == 404
    assert (await stranger.get(HOOKS)).json()["items"] == []
    assert (await ada.get(rest)).status_code == 200


async def test_deliveries_are_inspected_and_replayed(here: FullApp, ada: httpx.AsyncClient) -> None:
    await enqueue_deliveries(here.ports)
    id = (await made(ada))["id"]
    await ada.put(f"{FILES}/a.md", json={"content": "a text that is never told"})
    place = f"{HOOKS}/{id}/deliveries"
    stop = asyncio.Event()
    work = asyncio.create_task(run_dispatch(here.ports, stop, backoff=()))
    failed = await _settled(ada, place, 1, here.ports)
    [tried] = failed["attempts"]
    assert (failed["state"], failed["type"], failed["tries"]) == ("failed", "workspace.updated", 1)
    assert (tried["status"], tried["problem"]) == (None, "there is no network here")
    assert failed["payload"]["data"]["path"] == "a.md"
    assert "never told" not in json.dumps(failed)
    again = await ada.post(f"{place}/{failed['id']}/replay")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    twice = await _settled(ada, place, 2, here.ports)
    stop.set()
    await work
    assert (twice["id"], len(twice["attempts"])) == (failed["id"], 2)
    assert (await ada.post(f"{place}/msg_none/replay")).status_code == 404
    other = (await made(ada))["id"]
    wrong = f"{HOOKS}/{other}/deliveries/{failed['id']}/replay"
    assert (await ada.post(wrong)).status_code == 404
    for cursor in ("%00", "zzz"):
        assert (await ada.get(f"{place}?cursor={cursor}")).status_code == 400
        assert (await ada.get(f"/v1/webhooks?cursor={cursor}")).status_code == 400


async def _settled(
    client: httpx.AsyncClient, place: str, tries: int, ports: Ports | None = None
) -> dict[str, Any]:
    """The one delivery, once it has been tried so often and is no longer pending."""
    async with asyncio.timeout(30):
        while True:
            items = (await client.get(place)).json()["items"]
            if items and len(items[0]["attempts"]) >= tries and items[0]["state"] != "pending":
                told: dict[str, Any] = items[0]
                return told
            if ports is not None:
                await ports.events.wait_for_new(0.01)


async def test_a_live_server_delivers_signed_and_tries_again(tmp_path: File) -> None:
    with serving(tmp_path, webhooks_private="true", webhook_backoff="0,0,0") as live:
        async with receiver([500, 503]) as (url, letters), live.http() as ada:
            told = await made(ada, url=url, events=["*"])
            await ada.put(f"{FILES}/a.md", json={"content": "x"})
            async with asyncio.timeout(30):
                heard = [await letters.get() for _ in range(3)]
            delivery = await _settled(ada, f"{HOOKS}/{told['id']}/deliveries", 3)
    key = base64.b64decode(told["secret"].removeprefix("whsec_"))
    for headers, body in heard:
        id, stamp = headers["webhook-id"], headers["webhook-timestamp"]
        mac = hmac.new(key, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
        assert id == delivery["id"]
        assert json.loads(body) == delivery["payload"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500, 503, 200]
    assert delivery["state"] == "delivered"
    assert letters.empty()
