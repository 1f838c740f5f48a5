"""Keys over REST."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server
from tests.support.stores import advance_clock

pytestmark = pytest.mark.anyio
ROBOT = {"name": "robot", "kind": "service"}


async def test_a_key_is_returned_once_and_has_its_scopes(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    created = await owner.post("/v1/keys", json={**ROBOT, "scopes": ["tenant:read"]})
    assert created.status_code == 201
    assert created.headers["cache-control"] == "no-store"
    body = created.json()
    key = body.pop("key")
    assert key.startswith(body["prefix"])
    assert {**ROBOT, "scopes": ["tenant:read"], "personId": None, "agentId": None}.items() <= (
        body.items()
    )
    robot = server.as_(key)
    assert (await robot.get("/v1/people")).status_code == 200
    assert (await robot.get("/v1/audit")).status_code == 403
    fetched = await owner.get(f"/v1/keys/{body['id']}")
    assert fetched.json()["lastUsedAt"] is not None
    assert {**fetched.json(), "lastUsedAt": None} == body
    everything = fetched.text + (await owner.get("/v1/keys")).text
    assert key not in everything
    assert "hash" not in everything


async def test_a_revoked_key_is_401_from_the_next_request_on(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    body = (await owner.post("/v1/keys", json={**ROBOT, "scopes": ["tenant:read"]})).json()
    robot = server.as_(body["key"])
    assert (await robot.get("/v1/people")).status_code == 200
    assert (await owner.delete(f"/v1/keys/{body['id']}")).status_code == 204
    assert (await robot.get("/v1/people")).status_code == 401
    assert (await owner.get(f"/v1/keys/{body['id']}")).status_code == 404
    assert (await owner.delete(f"/v1/keys/{body['id']}")).status_code == 404


async def test_a_key_expires_at_its_time(server: RestServer, owner: httpx.AsyncClient) -> None:
    body = {**ROBOT, "scopes": ["tenant:read"], "expiresAt": "2099-12-31T23:00:00.123+01:00"}
    created = await owner.post("/v1/keys", json=body)
    assert created.json()["expiresAt"] == "2099-12-31T22:00:00.123Z"
    robot = server.as_(created.json()["key"])
    assert (await robot.get("/v1/people")).status_code == 200
    advance_clock(server.ports, 75 * 366 * 86_400_000)
    assert (await robot.get("/v1/people")).status_code == 401


async def test_an_invalid_key_is_400(owner: httpx.AsyncClient) -> None:
    wrongs: list[dict[str, Any]] = [
        {"kind": "robot"},
        {"kind": None},
        {"kind": "agent"},
        {"name": ""},
        {"name": "a\x00"},
        {"scopes": []},
        {"scopes": ["everything"]},
        {"scopes": "workspace:read"},
        {"personId": "per_1"},
        {"personId": "a\x00"},
        {"workspace": ""},
        {"workspace": "a/b"},
        {"workspace": "a\n"},
        {"workspace": "w", "agentId": "a"},
        {"workspace": "w", "scopes": ["tenant:admin"]},
        {"expiresAt": "soon"},
        {"expiresAt": "2099-01-01T00:00:00"},
        {"expiresAt": "1970-01-01T00:00:00Z"},
        {"expiresAt": "2020-01-01T00:00:00Z"},
        {"expiresAt": "0001-01-01T00:00:00+23:59"},
        {"expiresAt": "9999-12-31T23:59:59-23:59"},
        {"expiresAt": 4102444800},
        {"hash": "x"},
    ]
    for wrong in wrongs:
        answer = await owner.post("/v1/keys", json={**ROBOT, **wrong})
        assert answer.status_code == 400, (wrong, answer.text)


async def test_a_key_for_an_unknown_holder_is_404(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    other = await server.create_tenant("globex")
    agent = (await other.post("/v1/agents", json={"slug": "marco", "name": "Marco"})).json()
    wrongs: list[dict[str, Any]] = [
        {"kind": "agent", "agentId": agent["id"]},
        {"kind": "agent", "agentId": "marco"},
    ]
    for wrong in wrongs:
        answer = await owner.post("/v1/keys", json={**ROBOT, **wrong})
        assert answer.status_code == 404, (wrong, answer.text)


async def test_a_key_bound_to_an_agent_reads_its_stack(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await owner.put("/v1/templates/sales/files/SOUL.md", json={"content": "warm"})
    body = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    agent = (await owner.post("/v1/agents", json=body)).json()
    marco = await server.key(owner, kind="agent", agentId="marco")
    assert (await marco.get("/v1/host/workspace/files/SOUL.md")).json()["content"] == "warm"
    assert (await marco.get("/v1/people")).status_code == 403
    assert (await marco.post("/v1/keys", json=ROBOT)).status_code == 403
    assert (await owner.delete(f"/v1/agents/{agent['id']}")).status_code == 204
    assert (await marco.get("/v1/host/workspace/files/SOUL.md")).status_code == 401


async def test_a_member_lists_own_keys_and_creates_none_for_others(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    profile = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    bob = (await owner.post("/v1/people", json=profile)).json()
    member = await server.person(owner, bob["id"])
    second = await server.key(member, kind="person")
    [first, other] = (await member.get("/v1/keys")).json()["items"]
    assert {first["personId"], other["personId"]} == {bob["id"]}
    assert len((await owner.get("/v1/keys")).json()["items"]) == 3
    assert (await member.post("/v1/keys", json=ROBOT)).status_code == 403
    too_much = {"name": "x", "kind": "person", "scopes": ["tenant:admin"]}
    assert (await member.post("/v1/keys", json=too_much)).status_code == 403
    [ada] = [person for person in (await owner.get("/v1/people")).json()["items"] if person != bob]
    for_ada = {"name": "x", "kind": "person", "personId": ada["id"]}
    assert (await member.post("/v1/keys", json=for_ada)).status_code == 403
    [owners] = [k for k in (await owner.get("/v1/keys")).json()["items"] if k["name"] == "owner"]
    assert (await member.get(f"/v1/keys/{owners['id']}")).status_code == 404
    assert (await member.delete(f"/v1/keys/{owners['id']}")).status_code == 404
    assert (await member.delete(f"/v1/keys/{other['id']}")).status_code == 204
    assert (await second.get("/v1/keys")).status_code == 401


async def test_another_tenants_keys_are_404(server: RestServer, owner: httpx.AsyncClient) -> None:
    other = await server.create_tenant("globex")
    [theirs] = (await other.get("/v1/keys")).json()["items"]
    assert (await owner.get(f"/v1/keys/{theirs['id']}")).status_code == 404
    assert (await owner.delete(f"/v1/keys/{theirs['id']}")).status_code == 404
    assert (await other.get("/v1/keys")).status_code == 200


async def test_a_repeated_create_returns_the_same_key(owner: httpx.AsyncClient) -> None:
    once = {"Idempotency-Key": "abc"}
    first = await owner.post("/v1/keys", json=ROBOT, headers=once)
    again = await owner.post("/v1/keys", json=ROBOT, headers=once)
    assert first.json() == again.json()
    assert len((await owner.get("/v1/keys")).json()["items"]) == 2


async def test_no_key_gets_the_response_to_another_key_of_its_holder(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    once, body = {"Idempotency-Key": "abc"}, {"name": "laptop", "kind": "person"}
    weak = await owner.post("/v1/keys", json={**body, "scopes": ["tenant:read"]})
    ending = await owner.post("/v1/keys", json={**body, "expiresAt": "2099-12-31T23:00:00Z"})
    first = await owner.post("/v1/keys", json=body, headers=once)
    refused = await server.as_(weak.json()["key"]).post("/v1/keys", json=body, headers=once)
    assert refused.status_code == 403
    limited = await server.as_(ending.json()["key"]).post("/v1/keys", json=body, headers=once)
    assert limited.json()["expiresAt"] == "2099-12-31T23:00:00.000Z"
    again = await owner.post("/v1/keys", json=body, headers=once)
    assert again.json() == first.json()


async def test_a_key_whose_response_was_lost_is_not_created_twice(tmp_path: Any) -> None:
    async with open_rest_server(tmp_path, forgetful=True) as server:
        owner = await server.create_tenant()
        once = {"Idempotency-Key": "abc"}
        answers = [await owner.post("/v1/keys", json=ROBOT, headers=once) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 409]
        assert len((await owner.get("/v1/keys")).json()["items"]) == 2


async def test_a_key_is_revoked_with_the_keys_that_it_created(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    scopes = {"scopes": ["tenant:admin", "tenant:read", "workspace:read"]}
    first = (await owner.post("/v1/keys", json={"name": "a", "kind": "service", **scopes})).json()
    body = {"name": "b", "kind": "service", "scopes": ["workspace:read"]}
    second = (await server.as_(first["key"]).post("/v1/keys", json=body)).json()
    assert second["createdByKeyId"] == first["id"]
    for _ in range(2):
        revoked = await owner.delete(
            f"/v1/keys/{first['id']}",
            params={"createdKeys": "true"},
            headers={"Idempotency-Key": "once"},
        )
        assert revoked.status_code == 204
    for key in (first, second):
        assert (await server.as_(key["key"]).get("/v1/session")).status_code == 401
