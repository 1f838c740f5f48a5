"""The overlay endpoint: order of checks, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.support.rest_client import PLATFORM, RestServer
from tests.support.rest_tenant import (
    URL,
    create_member,
    create_overlay_agent,
    post_action,
    refused_action,
    run_action,
    sha,
)

from carrel.actions.accounts import credentials
from carrel.core.access import Actor
from carrel.server.http.app import create_app
from carrel.server.http.endpoint import Headers
from carrel.server.http.metrics import Metrics
from carrel.server.rest.files import overlay_api

pytestmark = pytest.mark.anyio

WRITES = ("put", "delete", "regenerate-map", "update-identity-field")
HEADERS = {"content-type", "authorization", "x-api-key", "x-tenant-id", "x-principal-id"}


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> str:
    return await create_overlay_agent(owner)


async def member_client(server: RestServer, owner: httpx.AsyncClient) -> httpx.AsyncClient:
    bob = await create_member(owner)
    return await server.person(owner, bob["id"])


def assert_cors_headers(answer: httpx.Response) -> None:
    headers = answer.headers
    assert headers["access-control-allow-origin"] == "*"
    assert headers["access-control-allow-methods"] == "POST, OPTIONS"
    allowed = {name.strip().lower() for name in headers["access-control-allow-headers"].split(",")}
    assert allowed == HEADERS | {"if-none-match"}
    assert headers["access-control-expose-headers"] == "ETag"
    assert headers["access-control-max-age"] == "3600"


async def test_a_preflight_needs_no_credential(server: RestServer) -> None:
    for token in (None, "wrong"):
        answer = await server.as_(token).options(URL)
        assert (answer.status_code, answer.content) == (204, b"")
        assert_cors_headers(answer)


async def test_every_response_carries_cors_headers(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    listed = await post_action(owner, "list", agentId=marco)
    cached = {"If-None-Match": listed.headers["etag"]}
    same = await owner.post(URL, json={"action": "list", "agentId": marco}, headers=cached)
    answers = [
        listed,
        same,
        await post_action(server.as_(None), "list", agentId=marco),
        await owner.post(URL, content=b"{"),
        await post_action(owner, "list", agentId="missing"),
        await post_action(owner, "put", agentId=marco, path="USER.md", content="x"),
        await owner.get(URL),
    ]
    assert [answer.status_code for answer in answers] == [200, 304, 401, 400, 404, 403, 405]
    for answer in answers:
        assert_cors_headers(answer)
        if answer.status_code >= 400:
            body = answer.json()
            assert body == {"ok": False, "error": body["error"]}
        if answer.status_code != 304:
            assert answer.headers["content-type"] == "application/json"


async def test_a_missing_credential_is_401_before_anything_else(server: RestServer) -> None:
    for token in (None, "unknown"):
        for body in (b"{", b"", b'{"tenantSlug": "acme"}', b'{"action": "list", "defaults": true}'):
            answer = await server.as_(token).post(URL, content=body)
            assert answer.status_code == 401
            assert answer.json()["ok"] is False
            assert "Unauthorized" in answer.json()["error"]


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b"1", b"null", b'"x"', b"[" * 99_999])
async def test_a_body_that_is_not_a_json_object_is_400(
    owner: httpx.AsyncClient, body: bytes
) -> None:
    answer = await owner.post(URL, content=body)
    assert (answer.status_code, answer.json()["ok"]) == (400, False)


async def test_a_missing_body_is_an_empty_object(owner: httpx.AsyncClient) -> None:
    for body in (b"", b"{}"):
        answer = await owner.post(URL, content=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "action is required")


@pytest.mark.parametrize("field", ["tenantId", "tenantSlug", "instanceId"])
@pytest.mark.parametrize("value", [None, "", "acme", 0, False, {}])
async def test_a_tenant_field_in_the_body_is_refused_by_name(
    server: RestServer, owner: httpx.AsyncClient, marco: str, field: str, value: Any
) -> None:
    body: dict[str, Any] = {"agentId": marco, "path": "a.md", "content": "x", field: value}
    for client in (owner, server.as_(PLATFORM)):
        for action in ("put", "", "nonsense"):
            status, error = await refused_action(client, action, **body)
            assert status == 400
            assert {"tenantId", "tenantSlug", "instanceId"} <= set(error.replace(",", "").split())
    assert (await owner.get(f"/v1/agents/{marco}/files/a.md")).status_code == 404


async def test_a_credential_without_a_tenant_is_401_after_the_body_is_parsed(
    server: RestServer,
) -> None:
    platform = server.as_(PLATFORM)
    assert (await platform.post(URL, content=b"{")).status_code == 400
    for action in ("", "list"):
        status, error = await refused_action(platform, action)
        assert (status, "caller tenant" in error) == (401, True)


@pytest.mark.parametrize("action", [None, "", 0, False, [], {}])
async def test_a_missing_action_is_400_before_the_selectors(
    owner: httpx.AsyncClient, action: Any
) -> None:
    for more in ({}, {"agentId": "missing"}):
        answer = await owner.post(URL, json={"action": action, **more})
        assert (answer.status_code, answer.json()["error"]) == (400, "action is required")


@pytest.mark.parametrize(
    "selectors",
    [
        {},
        {"agentId": ""},
        {"agentId": None, "templateId": "", "defaults": False},
        {"agentId": "a", "templateId": "b"},
        {"agentId": "a", "defaults": True},
        {"templateId": "a", "defaults": 1},
        {"agentId": "a", "templateId": "b", "defaults": True},
    ],
)
@pytest.mark.parametrize("action", ["list", "put", "nonsense"])
async def test_exactly_one_selector_is_needed(
    owner: httpx.AsyncClient, selectors: dict[str, Any], action: str
) -> None:
    status, error = await refused_action(owner, action, **selectors)
    assert (status, error.startswith("Exactly one")) == (400, True)


@pytest.mark.parametrize("name", [1, True, ["a"], {"a": 1}])
async def test_a_selector_that_is_not_a_string_is_400(owner: httpx.AsyncClient, name: Any) -> None:
    assert (await refused_action(owner, "list", agentId=name))[0] == 400
    assert (await refused_action(owner, "list", templateId=name))[0] == 400


async def test_an_unknown_target_is_404_for_every_action_and_caller(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    other = await server.create_tenant("globex")
    bob = await member_client(server, owner)
    for action in ("list", "get", *WRITES, "nonsense"):
        names = [
            (other, marco),
            (other, "marco"),
            (bob, "missing"),
            (owner, "\x00"),
            (owner, "a" * 999),
        ]
        for client, name in names:
            status, error = await refused_action(client, action, agentId=name)
            assert (status, error.startswith("Target not found")) == (404, True), (action, name)
        assert (await refused_action(other, action, templateId="sales"))[0] == 404
    assert (await refused_action(owner, "list", templateId=marco))[0] == 404


@pytest.mark.parametrize("field", ["action", "agentId", "path", "content"])
async def test_a_lone_surrogate_is_a_client_error(
    owner: httpx.AsyncClient, marco: str, field: str
) -> None:
    body = {"action": "put", "agentId": marco, "path": "a.md", "content": "x", field: "\ud800"}
    answer = await owner.post(URL, content=json.dumps(body).encode())
    assert answer.status_code in (400, 404)
    assert answer.json()["ok"] is False


async def test_a_member_reads_and_a_write_is_403_before_the_action_is_checked(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    bob = await member_client(server, owner)
    targets: list[dict[str, Any]] = [
        {"agentId": marco},
        {"templateId": "sales"},
        {"defaults": True},
    ]
    for target in targets:
        await run_action(bob, "list", **target)
        await run_action(bob, "get", path="SOUL.md", **target)
        for action in WRITES:
            status, error = await refused_action(bob, action, **target)
            assert (status, "admin or owner" in error) == (403, True)
            status, error = await refused_action(bob, action, path="../x", content="y", **target)
            assert (status, "admin or owner" in error) == (403, True)


async def test_an_admin_writes(server: RestServer, owner: httpx.AsyncClient, marco: str) -> None:
    amy = await create_member(owner, role="admin", email="amy@example.org")
    admin = await server.person(owner, amy["id"])
    await run_action(admin, "put", agentId=marco, path="a.md", content="x")
    await run_action(admin, "put", templateId="sales", path="a.md", content="y")
    await run_action(admin, "put", defaults=True, path="a.md", content="z")
    assert (await run_action(owner, "get", agentId=marco, path="a.md"))["sha256"] == sha("x")


@pytest.mark.parametrize("action", ["nonsense", "PUT", "Get", "get ", 5, ["get"], {"get": 1}])
async def test_an_unknown_action_is_400(owner: httpx.AsyncClient, marco: str, action: Any) -> None:
    answer = await owner.post(URL, json={"action": action, "agentId": marco})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Unknown action")


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("get", {}),
        ("get", {"path": ""}),
        ("get", {"path": None}),
        ("get", {"path": 5}),
        ("delete", {}),
        ("delete", {"path": ["a"]}),
        ("put", {"path": "a.md"}),
        ("put", {"content": "x"}),
        ("put", {"path": "", "content": "x"}),
        ("put", {"path": "a.md", "content": None}),
        ("put", {"path": "a.md", "content": 5}),
        ("put", {"path": "a.md", "content": {"a": 1}}),
        ("put", {"path": "a.md", "content": "x", "baseSha256": 5}),
        ("update-identity-field", {}),
        ("update-identity-field", {"field": "vibe"}),
        ("update-identity-field", {"value": "x"}),
        ("update-identity-field", {"field": "vibe", "value": 5}),
        ("update-identity-field", {"field": ["vibe"], "value": "x"}),
    ],
)
async def test_a_missing_or_non_string_field_is_400(
    owner: httpx.AsyncClient, marco: str, action: str, body: dict[str, Any]
) -> None:
    assert (await refused_action(owner, action, agentId=marco, **body))[0] == 400


UNSAFE = ["/a", "../a", "a/../b", "a//b", "./a", "a/.", "a/", "a\\b", "a\x00b", "..", "x" * 2000]


@pytest.mark.parametrize("path", UNSAFE)
@pytest.mark.parametrize("target", [{"agentId": "marco"}, {"templateId": "sales"}, {"defaults": 1}])
async def test_an_unsafe_path_is_400_everywhere(
    owner: httpx.AsyncClient, marco: str, path: str, target: dict[str, Any]
) -> None:
    for action in ("get", "put", "delete"):
        assert (await refused_action(owner, action, path=path, content="x", **target))[0] == 400


class Failing:
    """Trees that fail on every call."""

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: Any, **__: Any) -> Any:
            raise RuntimeError("the secret is hunter2")

        return fail


async def test_an_unexpected_error_returns_only_an_id(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    async def authenticate(headers: Headers) -> Actor:
        token = owner.headers["authorization"].partition(" ")[2]
        return await credentials.authenticate(server.ports, token)

    ports = replace(server.ports, trees=Failing())
    app = create_app(ports, overlay_api.ENDPOINTS, authenticate, metrics=Metrics())
    answer = await post_action(
        RestServer(ports, app).as_(None), "get", agentId=marco, path="SOUL.md"
    )
    assert_cors_headers(answer)
    assert (answer.status_code, answer.json()["ok"]) == (500, False)
    assert answer.headers["x-request-id"] in answer.json()["error"]
    assert "hunter2" not in answer.text
