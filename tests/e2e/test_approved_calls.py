"""Approved calls on servers that are killed: each runs once or not at all, and never twice."""

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
from tests.support.server_process import PLAIN, TOKEN, Live, serving
from tests.support.shell_session import IDLE, WORKING, furnish
from tests.support.sse_client import listening
from tests.support.wait import wait_until_sync

BASH = "/v1/agents/kate/tools/bash"
ROUNDS, CALLS = 3, 5
QUICK: dict[str, Any] = {"approval_lease_seconds": "2"}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: File) -> dict[str, Any]:
    """The settings of a store in which there is an agent."""
    if request.param == "sqlite":
        asyncio.run(furnish(tmp_path / "data"))
        return {}
    url = request.getfixturevalue("postgres_url")
    key = "ab" * 32
    asyncio.run(furnish(url, vault_key=key))
    return {"database_url": url, "vault_key": key}


def http(live: Live) -> httpx.Client:
    head = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN)


def asked(desk: httpx.Client, command: str, **more: Any) -> str:
    answer = desk.post(BASH, json={"arguments": {"command": command}, **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval"]["id"])


def yes(desk: httpx.Client, id: str) -> None:
    answer = desk.post(f"/v1/approvals/{id}", json={"approved": True})
    assert answer.status_code == 200, answer.text


def ended(desk: httpx.Client, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: dict[str, Any] = desk.get(f"/v1/approvals/{id}", params={"wait": 25}).json()
        if found["result"] is not None:
            return found
    raise AssertionError(f"nothing came of it: {found}")


def lines(file: File) -> int:
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0


def test_what_was_approved_before_the_server_was_killed_runs_once_on_the_next(
    tmp_path: File, store: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    with serving(tmp_path / "data", program=IDLE, **store) as live, http(live) as desk:
        one, waits, no = (asked(desk, f"do {out}", callId=f"c{n}") for n in range(3))
        yes(desk, one)
        desk.post(f"/v1/approvals/{no}", json={"approved": False}).raise_for_status()
        live.kill()
    assert lines(out) == 0
    with serving(tmp_path / "data", program=WORKING, **store) as live, http(live) as desk:
        done = ended(desk, one)
        assert (done["status"], done["result"]["content"]) == ("finished", "written")
        again = desk.post(BASH, json={"arguments": {"command": f"do {out}"}, "callId": "c0"})
        assert (again.status_code, again.json()) == (200, done["result"])
        assert desk.get(f"/v1/approvals/{waits}").json()["status"] == "requested"
        live.kill()
    with serving(tmp_path / "data", program=WORKING, **store) as live, http(live) as desk:
        yes(desk, waits)
        assert ended(desk, waits)["status"] == "finished"
        assert desk.get(f"/v1/approvals/{one}").json() == done
    assert lines(out) == 2


def test_what_ran_when_the_server_was_killed_is_not_run_again(
    tmp_path: File, store: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    quick = {**store, **QUICK}
    with serving(tmp_path / "data", program=WORKING, **quick) as live, http(live) as desk:
        one = asked(desk, f"hold {out}")
        yes(desk, one)
        wait_until_sync(lambda: lines(out) == 1, "the call has written its line")
        live.kill()
    with serving(tmp_path / "data", program=WORKING, **quick) as live, http(live) as desk:
        done = ended(desk, one)
    assert (done["status"], done["result"]["isError"]) == ("finished", True)
    assert "interrupted" in done["result"]["content"]
    assert lines(out) == 1


def test_whenever_servers_are_killed_nothing_runs_twice(tmp_path: File) -> None:
    chance, data = random.Random(11), tmp_path / "data"
    asyncio.run(furnish(data))
    ids: dict[str, File] = {}
    for turn in range(ROUNDS):
        with two(data) as (one, other), http(one) as desk:
            for n in range(CALLS):
                out = tmp_path / f"out-{turn}-{n}"
                ids[asked(desk, f"do {out}")] = out
            for id in list(ids)[-chance.randint(1, CALLS) :]:
                yes(desk, id)
            one.kill()
            other.kill()
    with two(data) as (one, other), http(one) as desk, http(other) as elsewhere:
        for id in ids:
            yes(desk, id)
            yes(elsewhere, id)
        for id, out in ids.items():
            done = ended(desk, id)
            assert done["status"] == "finished"
            cut_off = "interrupted" in done["result"]["content"]
            assert done["result"]["isError"] is cut_off
            assert lines(out) in ({0, 1} if cut_off else {1})


@contextmanager
def two(data: File) -> Iterator[tuple[Live, Live]]:
    """Servers on one store."""
    how = {"program": WORKING, **QUICK}
    with serving(data, **how) as one, serving(data, **how) as other:
        yield one, other


def test_streams_tell_of_it_as_it_happens(tmp_path: File) -> None:
    asyncio.run(furnish(tmp_path / "data"))

    async def story(live: Live) -> None:
        out = tmp_path / "canary"
        async with live.http() as ada, listening(ada, "/v1/events?types=approval.requested") as one:
            await one.position()
            async with listening(ada, "/v1/events?types=approval.finished") as other:
                await other.position()
                sent = await ada.post(BASH, json={"arguments": {"command": f"do {out}"}})
                id = sent.json()["approval"]["id"]
                [told] = await one.take(1)
                await ada.post(f"/v1/approvals/{id}", json={"approved": True})
                [over] = await other.take(1)
        assert told.told["payload"]["approvalId"] == id
        assert told.told["workspace"] is None
        assert over.told["payload"]["status"] == "finished"
        assert "canary" not in str((told, over))

    with serving(tmp_path / "data", program=WORKING) as live:
        asyncio.run(story(live))
