"""Every write honours an Idempotency-Key; a repeated one changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app

from carrel.server.http.cookies import SAFE_METHODS
from carrel.settings import load
from carrel.wiring.server_app import endpoints

pytestmark = pytest.mark.anyio
KEY: Final = {"Idempotency-Key": "k-1"}
REPLAY: Final = "openwop-idempotent-replay"

READS: Final = {
    *("dry_run", "policy_preview", "agents_files_render"),
    *("git_upload_pack", "git_receive_pack"),
}
"""They change nothing."""
WITHOUT_CALLER: Final = {"sign_in_create", "browser_session_create", "browser_session_delete"}
"""Begin and end of a browser session: before and after them there is no owner of a key."""
OWN_KEYS: Final = {"tools_tools_call", "graphql"}
"""The header is the call id of a tool; a mutation has the argument idempotencyKey."""


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    """The owner of a tenant with a template and an agent that follows it."""
    client = await server.owner()
    for method, url, body in (
        ("POST", "/v1/templates", {"slug": "sales", "name": "Sales"}),
        ("PUT", "/v1/templates/sales/files/GUARDRAILS.md", {"content": "one"}),
        ("POST", "/v1/agents", {"slug": "kate", "name": "Kate", "templateId": "sales"}),
    ):
        assert (await client.request(method, url, json=body)).is_success
    return client


def test_every_write_honours_an_idempotency_key() -> None:
    served = endpoints(load(environ={}, file=File("no such file")))
    writes = {item.id for item in served if item.method not in SAFE_METHODS}
    idempotent = {item.id for item in served if item.idempotent}
    assert writes - idempotent == READS | WITHOUT_CALLER | OWN_KEYS


async def send_twice(client: httpx.AsyncClient, url: str, **body: Any) -> httpx.Response:
    """Send a request twice with one key; the second is answered like the first, and not run."""
    first, second = [await client.post(url, json=body, headers=KEY) for _ in range(2)]
    assert first.is_success, first.text
    assert REPLAY not in first.headers
    assert second.headers[REPLAY] == "true"
    assert (second.status_code, second.content) == (first.status_code, first.content)
    return first


async def test_a_bulk_accept_and_its_roll_back_are_repeated_once(ada: httpx.AsyncClient) -> None:
    for layer in ("templates/sales", "defaults"):
        path = "GUARDRAILS.md" if layer != "defaults" else "PLATFORM.md"
        assert (await ada.put(f"/v1/{layer}/files/{path}", json={"content": "two"})).is_success
        digest = hashlib.sha256(b"two").hexdigest()
        for operation in ("accept", "rollback"):
            url = f"/v1/{layer}/pins/{path}/{operation}"
            [result] = (await send_twice(ada, url, sha256=digest)).json()["results"]
            assert result["changed"], result


async def test_a_redaction_and_a_purge_are_repeated_once(ada: httpx.AsyncClient) -> None:
    url = "/v1/agents/kate/files/notes/a.md"
    assert (await ada.put(url, json={"content": "about figs and pears"})).is_success
    await send_twice(ada, f"{url}/redact", version=1)
    assert (await ada.put(url, json={"content": "about figs and pears"})).is_success
    step = await send_twice(ada, "/v1/purge", text="figs and pears")
    assert step.json()["counts"]["versions"]


async def test_an_answer_to_an_approval_is_repeated_once(ada: httpx.AsyncClient) -> None:
    box = (await ada.post("/accounts/me/sandboxes", json={"name": "asks"})).json()["sandboxId"]
    docs = (await ada.post("/accounts/me/workspaces", json={"name": "docs"})).json()["workspaceId"]
    config = {"workspaces": [{"name": "docs", "workspaceId": docs, "sandbox": box}]}
    assert (await ada.patch("/v1/agents/kate", json={"config": config})).is_success
    call = {"arguments": {"file_path": "a.md", "content": "a"}}
    waiting = (await ada.post("/v1/agents/kate/tools/write", json=call)).json()["approval"]
    await send_twice(ada, f"/v1/approvals/{waiting['id']}", approved=False)


async def test_a_write_over_the_overlay_api_is_repeated_once(ada: httpx.AsyncClient) -> None:
    put = {"action": "put", "agentId": "kate", "path": "notes/a.md", "content": "a"}
    url = "/api/workspaces/files"
    first, second = [
        await ada.post(url, json={**put, "baseSha256": ""}, headers=KEY) for _ in range(2)
    ]
    assert (first.status_code, second.json()) == (200, first.json())
    other = await ada.post(url, json=put, headers=KEY)
    assert other.status_code == 409

    get = {"action": "get", "agentId": "kate", "path": "notes/a.md"}
    for content in ("a", "b"):
        assert (await ada.post(url, json={**put, "content": content})).is_success
        read = await ada.post(url, json=get, headers={"Idempotency-Key": "k-2"})
        assert read.json()["content"] == content, "a read is never repeated"


async def test_the_key_of_a_tool_call_is_its_call_id(ada: httpx.AsyncClient) -> None:
    url, other_key = "/v1/agents/kate/tools/remember", {"Idempotency-Key": "k-2"}
    call = {"arguments": {"content": "figs"}}
    first, second, third = [
        await ada.post(url, json=call, headers=headers) for headers in (KEY, KEY, other_key)
    ]
    assert first.is_success, first.text
    assert second.json() == first.json() != third.json()
    changed = {"arguments": {"content": "pears"}}
    assert (await ada.post(url, json=changed, headers=KEY)).status_code == 409
    named = await ada.post(url, json={**changed, "callId": "c-1"}, headers=KEY)
    assert named.is_success, "the id of the body is the one that counts"
    blank = await ada.post(url, json=call, headers={"Idempotency-Key": "a b"})
    assert blank.status_code == 400


async def test_stored_requests_tell_nothing_about_a_text_to_purge(
    ada: httpx.AsyncClient, server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash of a request would tell whether a guessed text is the purged one."""
    claimed: list[str] = []
    claim = server.ports.idempotency.claim

    async def record_claim(key: Any, fingerprint: str, *rest: Any) -> Any:
        claimed.append(fingerprint)
        return await claim(key, fingerprint, *rest)

    monkeypatch.setattr(server.ports.idempotency, "claim", record_claim, raising=False)
    await ada.put(f"{FILES}/a.md", json={"content": "figs"}, headers=KEY)
    [fingerprint] = claimed
    assert server.ports.vault.decrypt_repeatable(fingerprint, "idempotency") not in fingerprint
