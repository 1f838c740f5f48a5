"""Credentials that the overlay endpoint and the others accept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.rest_tenant import URL

from carrel.actions.accounts.credentials import authenticate
from carrel.core.access import Actor

pytestmark = pytest.mark.anyio
LIST = {"action": "list", "defaults": True}


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def token_of(client: httpx.AsyncClient) -> str:
    return client.headers["Authorization"].partition(" ")[2]


async def actor_of(server: FullApp, client: httpx.AsyncClient) -> Actor:
    return await authenticate(server.ports, token_of(client))


async def statuses(server: FullApp, headers: dict[str, str]) -> set[int]:
    """The statuses of several endpoints for a request with these headers."""
    anonymous = server.as_(None)
    return {
        (await anonymous.post(URL, json=LIST, headers=headers)).status_code,
        (await anonymous.get(FILES, headers=headers)).status_code,
        (await anonymous.get("/v1/defaults/files", headers=headers)).status_code,
        (
            await anonymous.post(
                "/graphql", json={"query": "{ me { tenant { slug } } }"}, headers=headers
            )
        ).status_code,
    }


async def test_x_api_key_works_alone_and_with_its_own_tenant_id(server: FullApp) -> None:
    owner, other = await server.owner(), await server.owner("globex")
    machine = await server.key(owner)
    key, mine = token_of(machine), (await actor_of(server, owner)).tenant
    theirs = (await actor_of(server, other)).tenant
    for tenant in (mine, "acme"):
        assert await statuses(server, {"x-api-key": key, "x-tenant-id": tenant}) == {200}
    for tenant in (theirs, "globex", "", "ACME", "missing", "\x00"):
        assert await statuses(server, {"x-api-key": key, "x-tenant-id": tenant}) == {401}, tenant
    assert await statuses(server, {"x-api-key": key}) == {200}
    assert await statuses(server, {"x-api-key": ""}) == {401}
    assert await statuses(server, {"x-api-key": "", "x-tenant-id": mine}) == {401}
    assert await statuses(server, {"x-tenant-id": mine}) == {401}
    assert await statuses(server, {"x-api-key": "wrong"}) == {401}
    assert await statuses(server, {"x-api-key": "wrong", "x-tenant-id": mine}) == {401}


async def test_a_bearer_service_key_with_another_tenant_id_is_401(
    server: FullApp,
) -> None:
    owner, other = await server.owner(), await server.owner("globex")
    machine, other_key = await server.key(owner), await server.key(other)
    mine, theirs = [(await actor_of(server, client)).tenant for client in (owner, other)]
    bearer = {"Authorization": machine.headers["Authorization"]}
    for tenant in (mine, "acme"):
        assert await statuses(server, {**bearer, "x-tenant-id": tenant}) == {200}
    for tenant in (theirs, "globex", "", "ACME", "missing", "\x00"):
        assert await statuses(server, {**bearer, "x-tenant-id": tenant}) == {401}, tenant
    service_headers = {"x-api-key": token_of(other_key), "x-tenant-id": "globex"}
    assert await statuses(server, service_headers) == {200}
    assert await statuses(server, {**bearer, **service_headers}) == {401}


async def test_a_key_of_an_agent_is_accepted_as_x_api_key_and_a_person_s_refused(
    server: FullApp,
) -> None:
    owner = await server.owner()
    created = await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    body = {"name": "own", "kind": "agent", "agentId": created.json()["id"]}
    agent = (await owner.post("/v1/keys", json=body)).json()["key"]
    anonymous = server.as_(None)
    for tenant, status in (({}, 200), ({"x-tenant-id": "acme"}, 200), ({"x-tenant-id": "x"}, 401)):
        headers = {"x-api-key": agent, **tenant}
        assert (await anonymous.get(FILES, headers=headers)).status_code == status
        headers = {"x-api-key": token_of(owner), **tenant}
        assert (await anonymous.get(FILES, headers=headers)).status_code == 401


async def test_an_x_api_key_bound_to_an_agent_stays_bound(server: FullApp) -> None:
    owner = await server.owner()
    for slug in ("marco", "polo"):
        await owner.post("/v1/agents", json={"slug": slug, "name": slug})
    id = (await owner.get("/v1/agents/marco")).json()["id"]
    key = token_of(await server.key(owner, agent=id))
    headers = {"x-api-key": key, "x-tenant-id": "acme"}
    for name, status in (("marco", 200), ("polo", 404)):
        body = {"action": "list", "agentId": name}
        answer = await server.as_(None).post(URL, json=body, headers=headers)
        assert answer.status_code == status


async def test_the_word_bearer_is_optional(server: FullApp) -> None:
    token = token_of(await server.owner())
    for good in (token, f"Bearer {token}", f"bearer {token}", f"Bearer   {token} "):
        assert await statuses(server, {"Authorization": good}) == {200}, good
    for bad in (
        "",
        "Bearer",
        "Bearer ",
        f"Basic {token}",
        f"{token} x",
        f"Bearer{token}",
        token[:-1],
    ):
        assert await statuses(server, {"Authorization": bad}) == {401}, bad


async def test_x_api_key_is_tried_when_the_authorization_fails(server: FullApp) -> None:
    owner = await server.owner()
    service_headers = {"x-api-key": token_of(await server.key(owner)), "x-tenant-id": "acme"}
    assert await statuses(server, {"Authorization": "Bearer expired", **service_headers}) == {200}
    assert await statuses(
        server, {"Authorization": "Bearer expired", **service_headers, "x-tenant-id": "x"}
    ) == {401}
    created = await server.as_(None).post(
        "/v1/agents", json={"slug": "a", "name": "a"}, headers=service_headers
    )
    assert created.status_code == 403
    both = {"Authorization": owner.headers["Authorization"], **service_headers}
    created = await server.as_(None).post(
        "/v1/agents", json={"slug": "a", "name": "a"}, headers=both
    )
    assert created.status_code == 201


async def test_a_revoked_x_api_key_is_refused_at_once(server: FullApp) -> None:
    owner = await server.owner()
    created = (await owner.post("/v1/keys", json={"name": "a", "kind": "service"})).json()
    service_headers = {"x-api-key": created["key"], "x-tenant-id": "acme"}
    assert await statuses(server, service_headers) == {200}
    assert (await owner.delete(f"/v1/keys/{created['id']}")).status_code == 204
    assert await statuses(server, service_headers) == {401}
