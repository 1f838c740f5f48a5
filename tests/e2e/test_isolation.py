"""Data of one tenant is never visible to another, by any endpoint and any id.

Canaries stand in every text of the first tenant. The second tenant calls every operation of the
OpenAPI document with the first one's ids in every parameter, and with bodies that Hypothesis makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving

CANARY = "canary7d1f"
PLATFORM = "carrel_platform_of_the_isolation_tests"
STREAMS = {"/v1/events", "/v1/host/workspace/events"}
"""Streams do not end; the events of a run are requested as JSON."""


@dataclass(frozen=True)
class Scene:
    """Two tenants: the ids of the one with canaries, and a client of each."""

    operations: list[tuple[str, str]]
    ids: list[str]
    planted: httpx.Client
    other: httpx.Client
    before: dict[str, Any]


def create_canaries(client: httpx.Client) -> list[str]:
    def create(method: str, path: str, body: Any) -> dict[str, Any]:
        answer = client.request(method, path, json=body)
        assert answer.status_code in (200, 201), (path, answer.text)
        created: dict[str, Any] = answer.json()
        return created

    file = f"{CANARY}.md"
    create("PUT", f"/v1/host/workspace/files/{file}", {"content": f"{CANARY} one"})
    create("PUT", f"/v1/workspaces/{CANARY}/files/{file}", {"content": f"{CANARY} two"})
    create("PUT", f"/v1/defaults/files/{file}", {"content": f"{CANARY} three"})
    template = create("POST", "/v1/templates", {"slug": CANARY, "name": CANARY})["id"]
    create("PUT", f"/v1/templates/{template}/files/{file}", {"content": f"{CANARY} four"})
    body = {"slug": CANARY, "name": CANARY, "templateId": template}
    agent = create("POST", "/v1/agents", body)["id"]
    create("PUT", f"/v1/agents/{agent}/files/{file}", {"content": f"{CANARY} five"})
    person = {"name": CANARY, "email": f"{CANARY}@example.com", "role": "member", "title": CANARY}
    person_id = create("POST", "/v1/people", person)["id"]
    key = create("POST", "/v1/keys", {"name": CANARY, "kind": "service", "workspace": CANARY})["id"]
    create("PUT", f"/v1/secrets/{CANARY}", {"value": f"{CANARY} is a secret"})
    webhook_body = {"url": f"https://example.com/{CANARY}", "events": ["*"]}
    webhook = create("POST", "/v1/webhooks", webhook_body)["id"]
    session = create("POST", f"/v1/agents/{agent}/sessions", {"sourcePlugin": CANARY})["id"]
    entry = {"role": "user", "content": f"{CANARY} six", "senderId": CANARY}
    create("POST", f"/v1/agents/{agent}/sessions/{session}/entries", entry)
    run = create("POST", "/v1/runs", {"workflowId": CANARY})["runId"]
    memory = create("POST", f"/v1/agents/{agent}/memories", {"content": f"{CANARY} likes tea"})[
        "id"
    ]
    create("PUT", f"/v1/agents/{agent}/items/{CANARY}", {"value": f"{CANARY} shared"})
    dream = create("POST", f"/v1/agents/{agent}/dreams", {})["id"]
    return [file, CANARY, template, agent, person_id, key, webhook, session, memory, dream, run]


def visible_state(client: httpx.Client, ids: list[str]) -> dict[str, Any]:
    """All that the first tenant can see of itself, to detect changes."""
    pages = ("host/workspace/files", "people", "templates", "agents", "secrets", "webhooks", "runs")
    state = {page: client.get(f"/v1/{page}").json() for page in pages}
    state["session"] = client.get(f"/v1/agents/{CANARY}/sessions/{ids[-2]}").json()
    state["run"] = client.get(f"/v1/runs/{ids[-1]}").json()
    state["keys"] = [key["id"] for key in client.get("/v1/keys").json()["items"]]
    return state


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data: File = tmp_path_factory.mktemp("isolation")
    with serving(data, platform_token=PLATFORM, webhooks_private="1") as live:
        yield live


@pytest.fixture(scope="module")
def scene(live: ServerProcess) -> Iterator[Scene]:
    body = {"slug": "other", "name": "Other", "owner": {"name": "Eve", "email": "eve@example.com"}}
    head = {"Authorization": f"Bearer {PLATFORM}"}
    created = httpx.post(f"{live.url}/v1/tenants", json=body, headers=head, verify=PLAIN)
    assert created.status_code == 201, created.text
    description = httpx.get(f"{live.url}/openapi.json", verify=PLAIN).json()
    operations = [
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
        if path not in STREAMS and method in {"get", "put", "post", "patch", "delete"}
    ]
    tokens = (TOKEN, created.json()["ownerToken"])
    heads = [{"Authorization": f"Bearer {token}", "Accept": "application/json"} for token in tokens]
    with (
        httpx.Client(base_url=live.url, headers=heads[0], timeout=30, verify=PLAIN) as planted,
        httpx.Client(base_url=live.url, headers=heads[1], timeout=30, verify=PLAIN) as other,
    ):
        ids = create_canaries(planted)
        yield Scene(operations, ids, planted, other, visible_state(planted, ids))


BODIES: list[Any] = [
    None,
    {},
    {"content": "mine"},
    {"version": 1},
    {"status": "cancelled"},
    {"kept": False},
    {"name": "mine"},
    {"value": "a secret of mine"},
    {"workflowId": "mine"},
    {"approved": True},
    {"role": "user", "content": "mine"},
]


def request_with_ids(
    scene: Scene, method: str, path: str, ids: list[str], body: Any
) -> httpx.Response:
    values = iter(ids)
    url = re.sub(r"\{[^}]+\}", lambda _: next(values), path)
    linked = {"parentRunId": ids[-1], "replayOf": ids[-1], "agentId": ids[0], "templateId": ids[0]}
    if method in {"POST", "PATCH"} and isinstance(body, dict) and "workflowId" in body:
        body = {**body, **linked}
    return scene.other.request(method, url, json=body)


def check(scene: Scene, answer: httpx.Response) -> None:
    text = answer.text
    for id in scene.ids:  # ids of the request may be repeated; what they stand for may not
        text = text.replace(id, "")
    assert CANARY not in text, (answer.request.method, str(answer.request.url))
    assert answer.status_code < 500, (answer.request.url, answer.text)


def test_every_operation_with_every_id_of_another_tenant_reveals_nothing(scene: Scene) -> None:
    for method, path in scene.operations:
        for id in scene.ids:
            check(scene, request_with_ids(scene, method, path, [id] * 3, {"content": "mine"}))
    assert visible_state(scene.planted, scene.ids) == scene.before


def test_overlay_endpoint_reveals_nothing_of_another_tenant(scene: Scene) -> None:
    url, more = "/api/workspaces/files", {"path": scene.ids[0], "content": "mine", "field": "vibe"}
    writes = ("put", "delete", "regenerate-map", "update-identity-field")
    for action in ("list", "get", *writes):
        for selector in ("agentId", "templateId"):
            for id in scene.ids:
                body = {"action": action, selector: id, "includeContent": True, **more}
                answer = scene.other.post(url, json=body)
                check(scene, answer)
                assert answer.status_code == 404
    body = {"action": "list", "defaults": True, "includeContent": True}
    check(scene, scene.other.post(url, json=body))
    assert visible_state(scene.planted, scene.ids) == scene.before


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(choices=st.data())
def test_no_mixture_of_ids_and_bodies_reveals_or_changes_anything(
    scene: Scene, choices: st.DataObject
) -> None:
    method, path = choices.draw(st.sampled_from(scene.operations))
    ids = choices.draw(st.lists(st.sampled_from(scene.ids), min_size=3, max_size=3))
    check(scene, request_with_ids(scene, method, path, ids, choices.draw(st.sampled_from(BODIES))))


def test_first_tenant_is_unchanged_afterwards(scene: Scene) -> None:
    assert json.dumps(visible_state(scene.planted, scene.ids)) == json.dumps(scene.before)


def test_tenant_hints_in_query_and_body_have_no_effect(scene: Scene) -> None:
    tenant = scene.planted.get("/v1/tenants/me").json()
    for hint in ("tenant", "tenantId", "tenantSlug", "workspace", "workspaceId", "instanceId"):
        for value in (tenant["id"], tenant["slug"], CANARY):
            query = {hint: value}
            check(scene, scene.other.get("/v1/host/workspace/files", params=query))
            check(scene, scene.other.post("/v1/runs", json={"workflowId": "mine", **query}))
