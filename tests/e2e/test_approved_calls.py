"""Approved calls on servers that are killed: each runs at most once."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving
from tests.support.shell_session import IDLE, WORKING, create_agent_with_approvals
from tests.support.sse_client import open_stream
from tests.support.wait import wait_until_sync

BASH = "/v1/agents/kate/tools/bash"
ROUNDS, CALLS = 3, 5
QUICK: dict[str, Any] = {"approval_lease_seconds": "2"}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: File) -> dict[str, Any]:
    """The settings of a store that has an agent."""
    if request.param == "sqlite":
        asyncio.run(create_agent_with_approvals(tmp_path / "data"))
        return {}
    url = request.getfixturevalue("postgres_url")
    key = "ab" * 32
    asyncio.run(create_agent_with_approvals(url, vault_key=key))
    return {"database_url": url, "vault_key": key}


def http(live: ServerProcess) -> httpx.Client:
    head = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN)


def request_approval(client: httpx.Client, command: str, **more: Any) -> str:
    answer = client.post(BASH, json={"arguments": {"command": command}, **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval"]["id"])


def approve(client: httpx.Client, id: str) -> None:
    answer = client.post(f"/v1/approvals/{id}", json={"approved": True})
    assert answer.status_code == 200, answer.text


def wait_for_result(client: httpx.Client, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        approval: dict[str, Any] = client.get(f"/v1/approvals/{id}", params={"wait": 25}).json()
        if approval["result"] is not None:
            return approval
    raise AssertionError(f"no result: {approval}")


def lines(file: File) -> int:
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0


def test_call_approved_before_a_kill_runs_once_on_the_next_server(
    tmp_path: File, store: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    with serving(tmp_path / "data", program=IDLE, **store) as live, http(live) as client:
        approved, pending, denied = (
            request_approval(client, f"do {out}", callId=f"c{n}") for n in range(3)
        )
        approve(client, approved)
        client.post(f"/v1/approvals/{denied}", json={"approved": False}).raise_for_status()
        live.kill()
    assert lines(out) == 0
    with serving(tmp_path / "data", program=WORKING, **store) as live, http(live) as client:
        done = wait_for_result(client, approved)
        assert (done["status"], done["result"]["content"]) == ("finished", "written")
        again = client.post(BASH, json={"arguments": {"command": f"do {out}"}, "callId": "c0"})
        assert (again.status_code, again.json()) == (200, done["result"])
        assert client.get(f"/v1/approvals/{pending}").json()["status"] == "requested"
        live.kill()
    with serving(tmp_path / "data", program=WORKING, **store) as live, http(live) as client:
        approve(client, pending)
        assert wait_for_result(client, pending)["status"] == "finished"
        assert client.get(f"/v1/approvals/{approved}").json() == done
    assert lines(out) == 2


def test_call_that_was_running_during_a_kill_is_not_run_again(
    tmp_path: File, store: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    quick = {**store, **QUICK}
    with serving(tmp_path / "data", program=WORKING, **quick) as live, http(live) as client:
        approval = request_approval(client, f"hold {out}")
        approve(client, approval)
        wait_until_sync(lambda: lines(out) == 1, "the call has written its line")
        live.kill()
    with serving(tmp_path / "data", program=WORKING, **quick) as live, http(live) as client:
        done = wait_for_result(client, approval)
    assert (done["status"], done["result"]["isError"]) == ("finished", True)
    assert "interrupted" in done["result"]["content"]
    assert lines(out) == 1


def test_no_call_runs_twice_whenever_servers_are_killed(tmp_path: File) -> None:
    generator, data = random.Random(11), tmp_path / "data"
    asyncio.run(create_agent_with_approvals(data))
    ids: dict[str, File] = {}
    for round_number in range(ROUNDS):
        with two_servers(data) as (first, second), http(first) as client:
            for n in range(CALLS):
                out = tmp_path / f"out-{round_number}-{n}"
                ids[request_approval(client, f"do {out}")] = out
            for id in list(ids)[-generator.randint(1, CALLS) :]:
                approve(client, id)
            first.kill()
            second.kill()
    with two_servers(data) as (first, second), http(first) as client, http(second) as second_client:
        for id in ids:
            approve(client, id)
            approve(second_client, id)
        for id, out in ids.items():
            done = wait_for_result(client, id)
            assert done["status"] == "finished"
            was_interrupted = "interrupted" in done["result"]["content"]
            assert done["result"]["isError"] is was_interrupted
            assert lines(out) in ({0, 1} if was_interrupted else {1})


@contextmanager
def two_servers(data: File) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers on one store."""
    options = {"program": WORKING, **QUICK}
    with serving(data, **options) as first, serving(data, **options) as second:
        yield first, second


def test_streams_have_the_events_of_an_approval(tmp_path: File) -> None:
    asyncio.run(create_agent_with_approvals(tmp_path / "data"))

    async def scenario(live: ServerProcess) -> None:
        out = tmp_path / "canary"
        async with (
            live.http() as ada,
            open_stream(ada, "/v1/events?types=approval.requested") as requests,
        ):
            await requests.position()
            async with open_stream(ada, "/v1/events?types=approval.finished") as results:
                await results.position()
                sent = await ada.post(BASH, json={"arguments": {"command": f"do {out}"}})
                id = sent.json()["approval"]["id"]
                [request] = await requests.take(1)
                await ada.post(f"/v1/approvals/{id}", json={"approved": True})
                [result] = await results.take(1)
        assert request.payload["payload"]["approvalId"] == id
        assert request.payload["workspace"] is None
        assert result.payload["payload"]["status"] == "finished"
        assert "canary" not in str((request, result))

    with serving(tmp_path / "data", program=WORKING) as live:
        asyncio.run(scenario(live))
