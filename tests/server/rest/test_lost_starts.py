"""Requests that must not be done twice: a retry after a crash gets the lost response."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from msgspec.structs import replace as change
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.server_stores import open_app_over

from carrel.actions.events.webhook_dispatch import enqueue_deliveries
from carrel.actions.runs import runs
from carrel.core.webhooks import DeliveryAttempt, DeliveryState, PostResult
from carrel.server.http.endpoint import Endpoint
from carrel.settings import load
from carrel.wiring.server_app import endpoints

pytestmark = pytest.mark.anyio

ATTEMPT: Final = DeliveryAttempt(1, PostResult(200))

SECRET_RESPONSES: Final = {
    *("tenants_create", "keys_create", "keys_rotate", "webhooks_create"),
    "people_invite",
}
"""Their responses have a secret that is shown once: a lost one is answered with 409."""
REPEATABLE: Final = {
    *("runs_cancel", "runs_heartbeat", "sessions_close", "approvals_answer", "purge_purge"),
    *("pins_accept_for_all", "pins_accept_default_for_all"),
    *("pins_roll_back_for_all", "pins_roll_back_default_for_all", "reviews_roll_back"),
    *("pins_decline_for_all", "pins_decline_default_for_all"),
    *("memory_stores_redact_version", "agents_change_many"),
    *(f"{layer}_files_redact" for layer in ("agents", "templates", "defaults", "workspaces")),
}
"""Done twice, they have the effect of once."""


class Killed(BaseException):
    """The process died between the commit and the response."""


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
async def any_server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    client = await server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    return client


async def lose(
    server: FullApp, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, **request: Any
) -> None:
    """Send a request whose process dies between its commit and its response."""

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await client.request(**request)


async def retry(client: httpx.AsyncClient, request: dict[str, Any]) -> httpx.Response:
    """Send the request twice more; the responses are replays, and equal."""
    retried, again = [await client.request(**request) for _ in range(2)]
    assert retried.is_success, retried.text
    assert retried.headers["openwop-idempotent-replay"] == "true"
    assert (again.status_code, again.content) == (retried.status_code, retried.content)
    return retried


def post(url: str, body: dict[str, Any] | None = None, method: str = "POST") -> dict[str, Any]:
    headers = {"Idempotency-Key": "k"}
    return {"method": method, "url": url, "json": body or {}, "headers": headers}


def all_endpoints() -> list[Endpoint]:
    return list(endpoints(load(environ={}, file=File("no such file"))))


def test_every_idempotent_endpoint_can_answer_again() -> None:
    idempotent = {item.id for item in all_endpoints() if item.idempotent}
    rebuilt = {item.id for item in all_endpoints() if item.rebuild}
    assert rebuilt <= idempotent
    assert idempotent - rebuilt == SECRET_RESPONSES | REPEATABLE


@pytest.mark.parametrize(
    "body", [{"workflowId": "w"}, {"agentId": "kate"}, {"workflowId": "conformance-noop"}]
)
async def test_a_run_is_not_started_again_after_its_response_was_lost(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    expected = await ada.post("/v1/runs", json=body)
    request = post("/v1/runs", body)
    await lose(server, ada, monkeypatch, **request)

    retried = await retry(ada, request)

    listed = [run["runId"] for run in (await ada.get("/v1/runs")).json()["items"]]
    assert sorted(listed) == sorted([expected.json()["runId"], retried.json()["runId"]])
    assert retried.status_code == 201
    assert retried.json()["status"] == expected.json()["status"]
    assert retried.headers["location"] == retried.json()["statusUrl"]


async def test_a_noop_run_that_a_crash_left_running_is_completed_by_the_retry(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise Killed

    request = post("/v1/runs", {"workflowId": "conformance-noop"})
    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(runs, "_complete_noop", die)
        await ada.request(**request)

    retried = await retry(ada, request)

    assert retried.json()["status"] == "completed"
    assert len((await ada.get("/v1/runs")).json()["items"]) == 1


async def test_a_key_of_a_withdrawn_run_can_be_used_again(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of names and rules that changed meanwhile is cancelled, and the caller tries again."""

    async def is_inconsistent(*_: object) -> bool:
        return False

    request = post("/v1/runs", {"agentId": "kate"})
    with monkeypatch.context() as churn:
        churn.setattr(runs, "_is_consistent", is_inconsistent)
        assert (await ada.request(**request)).status_code == 409

    started = await ada.request(**request)

    assert (started.status_code, started.json()["status"]) == (201, "running")


@pytest.mark.parametrize(
    "body", [{}, {"id": "5f0c8a52-2f5e-4d3c-9f10-000000000001", "scope": "shared"}]
)
async def test_a_session_is_not_started_again_after_its_response_was_lost(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    root = "/v1/agents/kate/sessions"
    request = post(root, body)
    await lose(server, ada, monkeypatch, **request)

    retried = await retry(ada, request)

    [listed] = (await ada.get(root)).json()["items"]
    assert (retried.status_code, retried.json()["id"]) == (201, listed["id"])
    assert retried.headers["location"].endswith(f"/sessions/{listed['id']}")
    existing = post(root, {"id": listed["id"]})
    existing["headers"] = {"Idempotency-Key": "known"}
    await lose(server, ada, monkeypatch, **existing)
    assert (await retry(ada, existing)).status_code == 200


async def test_a_rebuilt_session_is_refused_like_the_first(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private session must not be taken for a shared one."""
    id = (await ada.post("/v1/agents/kate/sessions", json={})).json()["id"]
    request = post("/v1/agents/kate/sessions", {"id": id, "scope": "shared"})
    await lose(server, ada, monkeypatch, **request)

    retried = await ada.request(**request)

    assert (retried.status_code, retried.json()["error"]) == (409, "conflict")


async def test_a_lost_dream_is_not_answered_with_a_later_one(
    any_server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = any_server, await any_server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    dreams, memories = "/v1/agents/kate/dreams", "/v1/agents/kate/memories"
    lost = post(dreams)
    await lose(server, client, monkeypatch, **lost)
    [listed] = (await client.get(dreams)).json()["items"]
    later = (await client.post(dreams, json={})).json()["id"]

    retried = await retry(client, lost)

    assert retried.json()["id"] == listed["id"] != later
    remember = post(memories, {"content": "Ada likes tea"})
    await lose(server, client, monkeypatch, **remember)
    [memory] = (await client.get(memories)).json()["items"]
    replaced = {"content": "Ada likes mate", "supersedes": memory["id"]}
    supersede = post(memories, replaced) | {"headers": {"Idempotency-Key": "k2"}}
    await lose(server, client, monkeypatch, **supersede)
    assert (await client.request(**remember)).status_code == 404, "nothing is remembered again"
    assert (await retry(client, supersede)).json()["content"] == "Ada likes mate"
    assert len((await client.get(memories)).json()["items"]) == 1


async def test_a_lost_deletion_of_a_session_is_answered_and_deletes_no_later_one(
    any_server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = any_server, await any_server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    root = "/v1/agents/kate/sessions"
    for again in (False, True):
        key = {"Idempotency-Key": f"delete-{again}"}
        assert (await client.post(root, json={"id": "call"})).status_code == 201
        request: dict[str, Any] = {"method": "DELETE", "url": f"{root}/call", "headers": key}
        await lose(server, client, monkeypatch, **request)
        if again:
            assert (await client.post(root, json={"id": "call"})).status_code == 201

        assert (await retry(client, request)).status_code == 204

        assert (await client.get(f"{root}/call")).status_code == (200 if again else 404)


async def test_a_deletion_of_a_session_that_a_crash_interrupted_is_completed_by_the_retry(
    any_server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = any_server, await any_server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    root = "/v1/agents/kate/sessions"
    assert (await client.post(root, json={"id": "call"})).status_code == 201

    async def die(*_: object) -> None:
        raise Killed

    key = {"Idempotency-Key": "k"}
    request: dict[str, Any] = {"method": "DELETE", "url": f"{root}/call", "headers": key}
    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.sessions, "delete", die, raising=False)
        await client.request(**request)
    assert (await client.get(f"{root}/call")).status_code == 200

    assert (await retry(client, request)).status_code == 204

    assert (await client.get(f"{root}/call")).status_code == 404


async def test_a_delivery_is_not_sent_again_after_the_response_of_its_replay_was_lost(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue_deliveries(server.ports)
    body = {"url": "https://receiver.example/hook", "events": ["workspace.updated"]}
    hook = (await ada.post("/v1/webhooks", json=body)).json()["id"]
    await ada.put(f"{FILES}/a.md", json={"content": "x"})
    await enqueue_deliveries(server.ports)
    url = f"/v1/webhooks/{hook}/deliveries"
    [listed] = (await ada.get(url)).json()["items"]
    request = post(f"{url}/{listed['id']}/replay")
    await lose(server, ada, monkeypatch, **request)
    now = server.ports.clock.now() + 1000
    [sent] = await server.ports.deliveries.lease_due(now, now, 1)
    delivered = change(sent, state=DeliveryState.DELIVERED, attempts=1)
    await server.ports.deliveries.record_attempts([(delivered, ATTEMPT)])

    retried = await retry(ada, request)

    assert (retried.status_code, retried.json()["state"]) == (202, "delivered")
    assert await server.ports.deliveries.lease_due(now, now, 1) == ()


async def test_a_policy_put_whose_response_was_lost_does_not_undo_later_changes(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {"limits": {"maxFiles": 5000}}
    expected = (await ada.put("/v1/policy", json=mine)).json()
    request = post("/v1/policy", mine, "PUT")
    await lose(server, ada, monkeypatch, **request)
    later = (await ada.put("/v1/policy", json={"limits": {"maxFiles": 6000}})).json()

    assert (await retry(ada, request)).json() == expected
    assert (await ada.get("/v1/policy")).json() == later
