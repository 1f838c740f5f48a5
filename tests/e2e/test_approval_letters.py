"""Webhooks of approvals: a call that waits and its answer reach whoever subscribed, signed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.http_sink import receiver
from tests.support.server_process import serving
from tests.support.shell_session import WORKING, furnish

pytestmark = pytest.mark.anyio
BASH = "/v1/agents/kate/tools/bash"
EVENTS = ["approval.requested", "approval.answered", "approval.finished"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opened(secret: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """What a letter says, once its signature is found to be right."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    told: dict[str, Any] = json.loads(body)
    return told


@pytest.mark.parametrize(
    ("approved", "status", "types"),
    [(True, "finished", EVENTS), (False, "denied", EVENTS[:2])],
)
async def test_a_call_that_waits_and_its_answer_are_posted_signed(
    tmp_path: File, approved: bool, status: str, types: list[str]
) -> None:
    await furnish(tmp_path / "data")
    settings: dict[str, Any] = {"webhooks_private": "true", "webhook_backoff": "0"}
    with serving(tmp_path / "data", program=WORKING, **settings) as live:
        async with receiver([]) as (url, letters), live.http() as ada:
            hook = (await ada.post("/v1/webhooks", json={"url": url, "events": EVENTS})).json()
            command = {"command": f"do {tmp_path / 'out'}"}
            asked = (await ada.post(BASH, json={"arguments": command})).json()["approval"]
            async with asyncio.timeout(30):
                told = [opened(hook["secret"], *(await letters.get()))]
                assert told[0]["type"] == types[0]
                assert letters.empty(), "nothing is told of an answer before there is one"
                place = f"/v1/approvals/{asked['id']}"
                (await ada.post(place, json={"approved": approved})).raise_for_status()
                while len(told) < len(types):
                    told.append(opened(hook["secret"], *(await letters.get())))
            found = (await ada.get(place, params={"wait": 25})).json()
    assert sorted(each["type"] for each in told) == sorted(types)
    assert {each["data"]["approvalId"] for each in told} == {asked["id"]}
    assert (tmp_path / "out").exists() is approved
    assert found["status"] == status
