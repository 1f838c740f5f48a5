"""Inviting people and rotating keys over HTTP; decisions that only persons make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server
from tests.support.tenants import sign_in_as

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
EVERYTHING = sorted(Permission)
ADMIN = {"name": "Bob", "email": "bob@example.org", "role": "admin"}


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[RestServer]:
    async with open_rest_server(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: RestServer) -> httpx.AsyncClient:
    return await server.create_tenant()


@pytest.fixture
async def robot(server: RestServer, owner: httpx.AsyncClient) -> httpx.AsyncClient:
    """A service with every permission."""
    return await server.key(owner, scopes=EVERYTHING)


async def test_an_invited_person_signs_in_with_the_link(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    bob = (await owner.post("/v1/people", json=ADMIN)).json()
    invited = await owner.post(f"/v1/people/{bob['id']}/invite")
    assert invited.status_code == 201
    assert invited.headers["cache-control"] == "no-store"
    body = invited.json()
    assert sorted(body) == ["code", "expiresAt", "link"]
    assert body["link"] == f"http://carrel/sign-in#code={body['code']}"
    signed_in = await server.as_(None).post("/v1/sign-in", json={"code": body["code"]})
    assert signed_in.json()["person"]["id"] == bob["id"]
    again = await server.as_(None).post("/v1/sign-in", json={"code": body["code"]})
    assert again.status_code == 401


async def test_a_repeated_invite_with_one_idempotency_key_is_one_invitation(
    owner: httpx.AsyncClient,
) -> None:
    bob = (await owner.post("/v1/people", json=ADMIN)).json()
    headers = {"Idempotency-Key": "once"}
    first, second = [
        await owner.post(f"/v1/people/{bob['id']}/invite", headers=headers) for _ in range(2)
    ]
    assert first.json() == second.json()


async def test_a_service_neither_invites_nor_makes_a_persons_key(
    owner: httpx.AsyncClient, robot: httpx.AsyncClient
) -> None:
    bob = (await owner.post("/v1/people", json=ADMIN)).json()
    refused = [
        await robot.post(f"/v1/people/{bob['id']}/invite"),
        await robot.post("/v1/keys", json={"name": "x", "kind": "person", "personId": bob["id"]}),
        await owner.post("/v1/keys", json={"name": "x", "kind": "person", "personId": bob["id"]}),
    ]
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    keys = (await owner.get("/v1/keys")).json()["items"]
    assert {key["name"] for key in keys} == {"owner", "a key"}


async def test_any_key_rotates_itself(server: RestServer, owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    created = await owner.post("/v1/keys", json={"name": "m", "kind": "agent", "agentId": "marco"})
    old = server.as_(created.json()["key"])
    rotated = await old.post(f"/v1/keys/{created.json()['id']}/rotate")
    assert rotated.status_code == 201, rotated.text
    assert rotated.headers["cache-control"] == "no-store"
    new = server.as_(rotated.json()["key"])
    for client in (old, new):
        assert (await client.get("/v1/host/workspace/files")).status_code == 200
    ends = (await owner.get(f"/v1/keys/{created.json()['id']}")).json()["expiresAt"]
    assert ends is not None
    assert (await old.post("/v1/keys/key_0/rotate")).status_code == 404


PINNED_DOCS = {"pattern": "docs/**", "class": "pinned"}
LOOSER: list[dict[str, Any]] = [
    {"classes": []},
    {
        "classes": [
            {"pattern": "docs/*", "class": "live"},
            {"pattern": "docs/**", "class": "pinned"},
        ]
    },
    {"redaction": "off"},
    {"redaction": "warn"},
    {"agentWritable": ["**"]},
]


async def test_only_a_person_loosens_the_policy(
    owner: httpx.AsyncClient, robot: httpx.AsyncClient
) -> None:
    policy = (await owner.get("/v1/policy")).json()
    strict = {**policy, "classes": [PINNED_DOCS]}
    reason = {"Carrel-Reason": "why"}
    assert (await robot.put("/v1/policy", json=strict)).status_code == 200
    for change in LOOSER:
        looser = {**strict, **change}
        answer = await robot.put("/v1/policy", json=looser, headers=reason)
        assert answer.status_code == 403, (change, answer.text)
        assert (await owner.put("/v1/policy", json=looser, headers=reason)).status_code == 200
        assert (await owner.put("/v1/policy", json=strict)).status_code == 200
    stricter = {**strict, "classes": [{"pattern": "a/**", "class": "pinned"}, *strict["classes"]]}
    assert (await robot.put("/v1/policy", json=stricter)).status_code == 200


async def test_only_a_person_ends_the_review_of_dreams_or_approves_one(
    server: RestServer, owner: httpx.AsyncClient, robot: httpx.AsyncClient
) -> None:
    reviewed = {"dreaming": {"enabled": True, "review": True}}
    new = {"slug": "marco", "name": "Marco", "config": reviewed}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    marco = await server.key(owner, kind="agent", agentId="marco")
    member = {"name": "Eve", "email": "eve@example.org", "role": "member"}
    eve = (await owner.post("/v1/people", json=member)).json()["id"]
    plain = server.as_(await sign_in_as(owner, eve))
    for config in ({}, {"dreaming": {"enabled": True}}, {"dreaming": {"review": False}}):
        answer = await robot.patch("/v1/agents/marco", json={"config": config})
        assert answer.status_code == 403, answer.text
    for caller in (robot, marco, plain):
        answer = await caller.post("/v1/agents/marco/dreams/drm_0/approve")
        assert answer.status_code == 403, answer.text
    assert (await owner.post("/v1/agents/marco/dreams/drm_0/approve")).status_code == 404
    assert (await owner.patch("/v1/agents/marco", json={"config": {}})).status_code == 200
