"""Approvals through the wire: asked, listed, answered, waited for, told of."""

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
async def desk(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as found:
        yield found


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    return replace_bash_tool(monkeypatch)


@pytest.fixture
async def ada(desk: FullApp, shell: Shell) -> httpx.AsyncClient:
    owner = await desk.owner()
    await store_sandbox(desk.ports, await tenant(desk, owner))
    made = await owner.post(
        "/v1/agents", json={"slug": "kate", "name": "Kate", "config": SANDBOX_CONFIG}
    )
    assert made.status_code == 201, made.text
    return owner


async def tenant(desk: FullApp, who: httpx.AsyncClient) -> str:
    token = who.headers["Authorization"].partition(" ")[2]
    return (await authenticate(desk.ports, token)).tenant


async def asked(who: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await who.post(f"{TOOLS}/bash", json={**RUN, **more})
    assert answer.status_code == 202, answer.text
    assert list(answer.json()) == ["approval"]
    found: dict[str, Any] = answer.json()["approval"]
    return found


async def said(who: httpx.AsyncClient, id: str, approved: bool, **more: Any) -> httpx.Response:
    return await who.post(f"{LIST}/{id}", json={"approved": approved, **more})


async def test_a_call_is_answered_with_202_and_its_result_is_waited_for(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    async with run_approval_workers(desk.ports):
        one = await asked(ada, callId="call_1")
        assert (one["status"], one["tool"], one["input"]) == ("requested", "bash", RUN["arguments"])
        assert (one["sandboxId"], one["callId"], one["result"]) == (SANDBOX, "call_1", None)
        assert (await ada.get(f"{LIST}/{one['id']}")).json() == one
        waits = asyncio.create_task(ada.get(f"{LIST}/{one['id']}", params={"wait": 25}))
        answer = await said(ada, one["id"], True)
        assert (answer.status_code, answer.json()["status"]) == (200, "approved")
        done = (await waits).json()
        assert done["status"] == "finished"
        assert done["result"] == {"content": "ran rm -r old", "isError": False}
        again = await ada.post(f"{TOOLS}/bash", json={**RUN, "callId": "call_1"})
        assert (again.status_code, again.json()) == (200, done["result"])
        other = {"arguments": {"command": "ls"}, "callId": "call_1"}
        assert (await ada.post(f"{TOOLS}/bash", json=other)).status_code == 409


async def test_an_answer_is_idempotent_another_is_409_late_is_410_and_unknown_404(
    desk: FullApp, ada: httpx.AsyncClient, shell: Shell
) -> None:
    no, late = await asked(ada), await asked(ada)
    first = await said(ada, no["id"], False, reason="not today")
    assert (first.status_code, first.json()["reason"]) == (200, "not today")
    assert first.json()["result"] == {
        "content": "Error: denied by a person: not today",
        "isError": True,
    }
    again = await said(ada, no["id"], False, reason="never")
    assert (again.status_code, again.json()) == (200, first.json())
    other = await said(ada, no["id"], True)
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    advance_clock(desk.ports, DAY_MS)
    gone = await said(ada, late["id"], True)
    assert (gone.status_code, gone.json()["error"]) == (410, "expired")
    assert (await said(ada, "apr_" + "0" * 24, True)).status_code == 404
    assert (await said(ada, "..", True)).status_code == 404
    async with run_approval_workers(desk.ports):
        pass
    assert shell.ran == []


async def test_what_waits_is_listed_by_status_and_agent(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    ones = [await asked(ada) for _ in range(3)]
    await said(ada, ones[0]["id"], False)
    page = (await ada.get(LIST, params={"status": "requested", "limit": 1})).json()
    assert ([one["id"] for one in page["items"]], page["next"]) == ([ones[1]["id"]], ones[1]["id"])
    rest = {"status": "requested", "agent": "kate", "cursor": page["next"]}
    last = (await ada.get(LIST, params=rest)).json()
    assert ([one["id"] for one in last["items"]], last["next"]) == ([ones[2]["id"]], None)
    assert len((await ada.get(LIST)).json()["items"]) == 3
    for wrong in ({"status": "maybe"}, {"cursor": "x"}, {"agent": "a b"}, {"who": "x"}):
        assert (await ada.get(LIST, params=wrong)).status_code == 400, wrong
    assert (await ada.get(LIST, params={"agent": "nobody"})).status_code == 404


async def test_an_agent_asks_and_looks_but_never_answers(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    agent = (await ada.get("/v1/agents/kate")).json()["id"]
    made = await ada.post("/v1/keys", json={"name": "kate", "kind": "agent", "agentId": agent})
    kate, service = desk.as_(made.json()["key"]), await desk.key(ada)
    one = await asked(kate)
    assert (await kate.get(f"{LIST}/{one['id']}")).status_code == 200
    for who in (kate, service):
        assert (await said(who, one["id"], True)).status_code == 403
    reader = await desk.key(ada, Permission.WORKSPACE_READ)
    assert (await reader.post(f"{TOOLS}/bash", json=RUN)).status_code == 403
    assert (await said(reader, one["id"], True)).status_code == 403
    stranger = await desk.owner("globex")
    assert (await stranger.get(f"{LIST}/{one['id']}")).status_code == 404
    assert (await said(stranger, one["id"], True)).status_code == 404
    assert (await stranger.get(LIST)).json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"approved": "yes"}', b'{"approved": 1}', b'{"approved": true, "x": 1}', b"["],
)
async def test_what_is_no_answer_is_400(desk: FullApp, ada: httpx.AsyncClient, body: bytes) -> None:
    one = await asked(ada)
    head = {"Content-Type": "application/json"}
    answer = await ada.post(f"{LIST}/{one['id']}", content=body, headers=head)
    assert answer.status_code == 400


async def test_what_no_text_can_be_is_400_and_not_a_failure(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
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


async def test_a_list_of_tools_is_fitted_to_the_agent_and_outlives_what_is_gone(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    owner = await tenant(desk, ada)

    async def told() -> dict[str, Any]:
        items = (await ada.get(TOOLS)).json()["items"]
        return {tool["name"]: tool["inputSchema"]["properties"] for tool in items}

    async def configured(**config: Any) -> None:
        answer = await ada.patch("/v1/agents/kate", json={"config": config})
        assert answer.status_code == 200, answer.text

    assert list((await told())["bash"]) == ["command"]
    await store_record(desk.ports, owner, RecordType.WORKSPACE, SHARED, {})
    one = {"name": "a", "workspaceId": SHARED}
    await configured(**SANDBOX_CONFIG, workspaces=[one, {**one, "name": "b"}])
    assert list((await told())["bash"]) == ["command", "workspace"]
    assert "async_status" not in await told()
    await store_sandbox(desk.ports, owner, "bypass", persistent=True)
    assert "async_status" in await told()
    called = await ada.post(f"{TOOLS}/async_status", json={"arguments": {"command": "x"}})
    assert called.json()["content"] == "ran x"
    await store_sandbox(desk.ports, owner, None)
    assert "bash" in await told()
    assert "async_status" not in await told()
    broken = await ada.post(f"{TOOLS}/bash", json=RUN)
    assert broken.json() == {
        "content": f"Error: Referenced sandbox not found: {SANDBOX}",
        "isError": True,
    }
    await configured(workspaces=[one])
    assert "bash" not in await told()
    assert (await ada.post(f"{TOOLS}/bash", json=RUN)).status_code == 404
    await configured(**SANDBOX_CONFIG, allowedTools=["recall"])
    assert list(await told()) == ["recall"]
