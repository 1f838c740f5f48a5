"""Webhooks of approvals: request and answer are posted to subscribers, signed."""

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
from tests.support.shell_session import WORKING, create_agent_with_approvals

pytestmark = pytest.mark.anyio
BASH = "/v1/agents/kate/tools/bash"
EVENTS = ["approval.requested", "approval.answered", "approval.finished"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def verified_payload(secret: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """The payload of a request, whose signature must be valid."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    payload: dict[str, Any] = json.loads(body)
    return payload


@pytest.mark.parametrize(
    ("approved", "status", "types"),
    [(True, "finished", EVENTS), (False, "denied", EVENTS[:2])],
)
async def test_pending_call_and_its_answer_are_posted_signed(
    tmp_path: File, approved: bool, status: str, types: list[str]
) -> None:
    await create_agent_with_approvals(tmp_path / "data")
    settings: dict[str, Any] = {"webhooks_private": "true", "webhook_backoff": "0"}
    with serving(tmp_path / "data", program=WORKING, **settings) as live:
        async with receiver([]) as (url, requests), live.http() as ada:
            webhook = (await ada.post("/v1/webhooks", json={"url": url, "events": EVENTS})).json()
            command = {"command": f"do {tmp_path / 'out'}"}
            approval = (await ada.post(BASH, json={"arguments": command})).json()["approval"]
            async with asyncio.timeout(30):
                payloads = [verified_payload(webhook["secret"], *(await requests.get()))]
                assert payloads[0]["type"] == types[0]
                assert requests.empty(), "no event of an answer precedes it"
                approval_url = f"/v1/approvals/{approval['id']}"
                (await ada.post(approval_url, json={"approved": approved})).raise_for_status()
                while len(payloads) < len(types):
                    payloads.append(verified_payload(webhook["secret"], *(await requests.get())))
            closed = (await ada.get(approval_url, params={"wait": 25})).json()
    assert sorted(payload["type"] for payload in payloads) == sorted(types)
    assert {payload["data"]["approvalId"] for payload in payloads} == {approval["id"]}
    assert (tmp_path / "out").exists() is approved
    assert closed["status"] == status
