"""Approvals over REST: request, list, answer and wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.shell_commands import (
    SANDBOX,
    SANDBOX_CONFIG,
    SHARED,
    Shell,
    replace_bash_tool,
    store_record,
    store_sandbox,
)
from tests.support.stores import advance_clock
from tests.support.tenant_fixture import run_approval_workers

from carrel.actions.accounts.credentials import authenticate
from carrel.core.access import Permission
from carrel.core.store.record import RecordType
from carrel.ports.approvals import DAY_MS

pytestmark = pytest.mark.anyio
TOOLS = "/v1/agents/kate/tools"
LIST = "/v1/approvals"
RUN = {"arguments": {"command": "rm -r old"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    return replace_bash_tool(monkeypatch)


@pytest.fixture
async def ada(server: FullApp, shell: Shell) -> httpx.AsyncClient:
    owner = await server.owner()
    await store_sandbox(server.ports, await tenant_of(server, owner))
    created = await owner.post(
        "/v1/agents", json={"slug": "kate", "name": "Kate", "config": SANDBOX_CONFIG}
    )
    assert created.status_code == 201, created.text
    return owner


async def tenant_of(server: FullApp, client: httpx.AsyncClient) -> str:
    token = client.headers["Authorization"].partition(" ")[2]
    return (await authenticate(server.ports, token)).tenant


async def request_approval(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{TOOLS}/bash", json={**RUN, **more})
    assert answer.status_code == 202, answer.text
    assert list(answer.json()) == ["approval"]
    approval: dict[str, Any] = answer.json()["approval"]
    return approval


async def answer_approval(
    client: httpx.AsyncClient, id: str, approved: bool, **more: Any
) -> httpx.Response:
    return await client.post(f"{LIST}/{id}", json={"approved": approved, **more})


async def test_a_call_that_needs_approval_is_202_and_a_get_waits_for_its_result(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    async with run_approval_workers(server.ports):
        approval = await request_approval(ada, callId="call_1")
        assert (approval["status"], approval["tool"], approval["input"]) == (
            "requested",
            "bash",
            RUN["arguments"],
        )
        assert (approval["sandboxId"], approval["callId"], approval["result"]) == (
            SANDBOX,
            "call_1",
            None,
        )
        assert (await ada.get(f"{LIST}/{approval['id']}")).json() == approval
        waiting = asyncio.create_task(ada.get(f"{LIST}/{approval['id']}", params={"wait": 25}))
        answer = await answer_approval(ada, approval["id"], True)
        assert (answer.status_code, answer.json()["status"]) == (200, "approved")
        done = (await waiting).json()
        assert done["status"] == "finished"
        assert done["result"] == {"content": "ran rm -r old", "isError": False}
        again = await ada.post(f"{TOOLS}/bash", json={**RUN, "callId": "call_1"})
        assert (again.status_code, again.json()) == (200, done["result"])
        other = {"arguments": {"command": "ls"}, "callId": "call_1"}
        assert (await ada.post(f"{TOOLS}/bash", json=other)).status_code == 409


async def test_a_repeated_answer_is_200_a_different_409_a_late_410_an_unknown_404(
    server: FullApp, ada: httpx.AsyncClient, shell: Shell
) -> None:
    denied, late = [await request_approval(ada, callId=id) for id in ("c1", "c2")]
    first = await answer_approval(ada, denied["id"], False, reason="not today")
    assert (first.status_code, first.json()["reason"]) == (200, "not today")
    assert first.json()["result"] == {
        "content": "Error: denied by a person: not today",
        "isError": True,
    }
    again = await answer_approval(ada, denied["id"], False, reason="never")
    assert (again.status_code, again.json()) == (200, first.json())
    other = await answer_approval(ada, denied["id"], True)
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    advance_clock(server.ports, DAY_MS)
    gone = await answer_approval(ada, late["id"], True)
    assert (gone.status_code, gone.json()["error"]) == (410, "expired")
    assert (await answer_approval(ada, "apr_" + "0" * 24, True)).status_code == 404
    assert (await answer_approval(ada, "..", True)).status_code == 404
    async with run_approval_workers(server.ports):
        pass
    assert shell.ran == []


async def test_approvals_are_listed_by_status_and_agent(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    requested = [await request_approval(ada, callId=f"c{n}") for n in range(3)]
    await answer_approval(ada, requested[0]["id"], False)
    page = (await ada.get(LIST, params={"status": "requested", "limit": 1})).json()
    assert ([approval["id"] for approval in page["items"]], page["next"]) == (
        [requested[1]["id"]],
        requested[1]["id"],
    )
    rest = {"status": "requested", "agent": "kate", "cursor": page["next"]}
    last = (await ada.get(LIST, params=rest)).json()
    assert ([approval["id"] for approval in last["items"]], last["next"]) == (
        [requested[2]["id"]],
        None,
    )
    assert len((await ada.get(LIST)).json()["items"]) == 3
    for wrong in ({"status": "maybe"}, {"cursor": "x"}, {"agent": "a b"}, {"who": "x"}):
        assert (await ada.get(LIST, params=wrong)).status_code == 400, wrong
    assert (await ada.get(LIST, params={"agent": "missing"})).status_code == 404


async def test_an_agent_requests_and_reads_approvals_but_never_answers(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    agent = (await ada.get("/v1/agents/kate")).json()["id"]
    created = await ada.post("/v1/keys", json={"name": "kate", "kind": "agent", "agentId": agent})
    kate, service = server.as_(created.json()["key"]), await server.key(ada)
    approval = await request_approval(kate)
    assert (await kate.get(f"{LIST}/{approval['id']}")).status_code == 200
    for client in (kate, service):
        assert (await answer_approval(client, approval["id"], True)).status_code == 403
    reader = await server.key(ada, Permission.WORKSPACE_READ)
    assert (await reader.post(f"{TOOLS}/bash", json=RUN)).status_code == 403
    assert (await answer_approval(reader, approval["id"], True)).status_code == 403
    other_owner = await server.owner("globex")
    assert (await other_owner.get(f"{LIST}/{approval['id']}")).status_code == 404
    assert (await answer_approval(other_owner, approval["id"], True)).status_code == 404
    assert (await other_owner.get(LIST)).json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"approved": "yes"}', b'{"approved": 1}', b'{"approved": true, "x": 1}', b"["],
)
async def test_a_malformed_answer_is_400(
    server: FullApp, ada: httpx.AsyncClient, body: bytes
) -> None:
    approval = await request_approval(ada)
    head = {"Content-Type": "application/json"}
    answer = await ada.post(f"{LIST}/{approval['id']}", content=body, headers=head)
    assert answer.status_code == 400


async def test_strings_that_are_not_text_are_400(server: FullApp, ada: httpx.AsyncClient) -> None:
    head = {"Content-Type": "application/json"}
    for body in (
        b'{"arguments": {"command": "\\ud800"}}',
        b'{"arguments": {"command": "ls"}, "callId": "\\ud800"}',
        b'{"arguments": {"command": "ls"}, "callId": "a\\u0000"}',
    ):
        answer = await ada.post(f"{TOOLS}/bash", content=body, headers=head)
        assert answer.status_code == 400, answer.text
    nul = {"arguments": {"command": "a\x00b"}}
    assert (await ada.post(f"{TOOLS}/bash", json=nul)).status_code == 202
    assert (await ada.get(f"{LIST}/apr_1", params={"wait": 26})).status_code == 400


async def test_the_tool_list_follows_the_config_and_survives_deleted_records(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    tenant_id = await tenant_of(server, ada)

    async def list_tools() -> dict[str, Any]:
        items = (await ada.get(TOOLS)).json()["items"]
        return {tool["name"]: tool["inputSchema"]["properties"] for tool in items}

    async def set_config(**config: Any) -> None:
        answer = await ada.patch("/v1/agents/kate", json={"config": config})
        assert answer.status_code == 200, answer.text

    options = ["env", "cwd", "timeout"]
    assert list((await list_tools())["bash"]) == ["command", *options]
    await store_record(server.ports, tenant_id, RecordType.WORKSPACE, SHARED, {})
    attachment = {"name": "a", "workspaceId": SHARED}
    await set_config(**SANDBOX_CONFIG, workspaces=[attachment, {**attachment, "name": "b"}])
    assert list((await list_tools())["bash"]) == ["command", "workspace", *options]
    assert "async_status" not in await list_tools()
    await store_sandbox(server.ports, tenant_id, "bypass", persistent=True)
    assert "async_status" in await list_tools()
    reply = await ada.post(f"{TOOLS}/async_status", json={"arguments": {"command": "x"}})
    assert reply.json()["content"] == "ran x"
    await store_sandbox(server.ports, tenant_id, None)
    assert "bash" in await list_tools()
    assert "async_status" not in await list_tools()
    broken = await ada.post(f"{TOOLS}/bash", json=RUN)
    assert broken.json() == {
        "content": f"Error: Referenced sandbox not found: {SANDBOX}",
        "isError": True,
    }
    await set_config(workspaces=[attachment])
    assert "bash" not in await list_tools()
    assert (await ada.post(f"{TOOLS}/bash", json=RUN)).status_code == 404
    await set_config(**SANDBOX_CONFIG, allowedTools=["recall"])
    assert list(await list_tools()) == ["recall"]
