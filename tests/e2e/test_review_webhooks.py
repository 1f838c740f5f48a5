"""Webhooks of reviews and test events."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.http_sink import receiver
from tests.support.server_process import serving

pytestmark = pytest.mark.anyio
REVIEWS = ["review.requested", "review.answered"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_pinned_edit_and_its_review_are_posted(tmp_path: File) -> None:
    with serving(tmp_path / "data", webhooks_private="true") as live:
        async with receiver([]) as (url, requests), live.http() as ada:

            async def next_event() -> Any:
                async with asyncio.timeout(30):
                    return json.loads((await requests.get())[1])

            template = (await ada.post("/v1/templates", json={"slug": "t", "name": "T"})).json()
            agent = await ada.post(
                "/v1/agents", json={"slug": "kate", "name": "Kate", "templateId": "t"}
            )
            id = agent.json()["id"]
            await ada.post("/v1/webhooks", json={"url": url, "events": REVIEWS})
            files = f"/v1/templates/{template['id']}/files"
            await ada.put(f"{files}/SOUL.md", json={"content": "Live.\n"})
            await ada.put(f"{files}/GUARDRAILS.md", json={"content": "No promises.\n"})
            requested = await next_event()
            assert requested["type"] == "review.requested"
            data = requested["data"]
            assert (data["path"], data["templateId"]) == ("GUARDRAILS.md", template["id"])
            assert "url" not in data, "without a public URL there is no link"

            pins = (await ada.get(f"/v1/agents/{id}/pins")).json()["items"]
            [pin] = [pin for pin in pins if pin["updateAvailable"]]
            accept = f"/v1/agents/{id}/pins/GUARDRAILS.md/accept"
            body = {"sha256": pin["latestSha256"]}
            (await ada.post(accept, json=body)).raise_for_status()
            answered = await next_event()
            assert answered["type"] == "review.answered"
            assert answered["data"]["decision"] == "accepted"
            assert answered["data"]["agentId"] == id
            commit = {"writes": [{"op": "put", "path": "PLATFORM.md", "content": "Be brief.\n"}]}
            (await ada.post("/v1/defaults/commits", json=commit)).raise_for_status()
            assert (await next_event())["data"]["templateId"] is None


async def test_a_test_event_is_posted_once_and_shows_the_answer(tmp_path: File) -> None:
    settings: dict[str, Any] = {"webhooks_private": "true", "webhook_backoff": "0,0"}
    with serving(tmp_path / "data", **settings) as live:
        async with receiver([503]) as (url, requests), live.http() as ada:
            body = {"url": url, "events": ["run.started"]}
            hook = (await ada.post("/v1/webhooks", json=body)).json()["id"]
            test = f"/v1/webhooks/{hook}/test"
            once = {"Idempotency-Key": "one-test"}
            first = await ada.post(test, headers=once)
            assert (first.status_code, first.json()["type"]) == (202, "webhook.test")
            repeated = await ada.post(test, headers=once)
            assert repeated.json()["id"] == first.json()["id"]
            async with asyncio.timeout(30):
                payload = json.loads((await requests.get())[1])
                assert payload["data"]["webhookId"] == hook
                log = f"/v1/webhooks/{hook}/deliveries"
                [delivery] = (await ada.get(log)).json()["items"]
                while delivery["state"] == "pending":
                    [delivery] = (await ada.get(log)).json()["items"]
            assert delivery["state"] == "failed"
            assert [attempt["status"] for attempt in delivery["attempts"]] == [503]
            assert requests.empty()


async def test_the_catalogue_of_events_is_what_webhooks_accept(tmp_path: File) -> None:
    with serving(tmp_path / "data") as live:
        async with live.http() as ada:
            items = (await ada.get("/v1/event-types")).json()["items"]
            document = (await ada.get("/asyncapi.json")).json()
            summaries = {
                message["name"]: message["summary"]
                for message in document["components"]["messages"].values()
                if "summary" in message
            }
            assert {row["type"]: row["summary"] for row in items} == summaries
            url = "https://93.184.216.34/"
            body = {"url": url, "events": [row["type"] for row in items]}
            assert (await ada.post("/v1/webhooks", json=body)).status_code == 201
            refused = {"url": url, "events": ["webhook.test"]}
            assert (await ada.post("/v1/webhooks", json=refused)).status_code == 400
