"""By which credentials every endpoint can be asked, as wiring reads them."""

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
async def here(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def token_of(who: httpx.AsyncClient) -> str:
    return who.headers["Authorization"].partition(" ")[2]


async def actor_of(here: FullApp, who: httpx.AsyncClient) -> Actor:
    return await authenticate(here.ports, token_of(who))


async def statuses(here: FullApp, headers: dict[str, str]) -> set[int]:
    """What the overlay endpoint and the others answer to a request with these headers."""
    nobody = here.as_(None)
    return {
        (await nobody.post(URL, json=LIST, headers=headers)).status_code,
        (await nobody.get(FILES, headers=headers)).status_code,
        (await nobody.get("/v1/defaults/files", headers=headers)).status_code,
        (
            await nobody.post(
                "/graphql", json={"query": "{ me { tenant { slug } } }"}, headers=headers
            )
        ).status_code,
    }


async def test_a_services_key_goes_by_itself_beside_its_own_tenant(here: FullApp) -> None:
    owner, other = await here.owner(), await here.owner("globex")
    machine = await here.key(owner)
    key, mine = token_of(machine), (await actor_of(here, owner)).tenant
    theirs = (await actor_of(here, other)).tenant
    for tenant in (mine, "acme"):
        assert await statuses(here, {"x-api-key": key, "x-tenant-id": tenant}) == {200}
    for tenant in (theirs, "globex", "", "ACME", "nobody", "\x00"):
        assert await statuses(here, {"x-api-key": key, "x-tenant-id": tenant}) == {401}, tenant
    assert await statuses(here, {"x-api-key": key}) == {401}
    assert await statuses(here, {"x-api-key": "", "x-tenant-id": mine}) == {401}
    assert await statuses(here, {"x-api-key": "wrong", "x-tenant-id": mine}) == {401}


async def test_a_service_that_contradicts_its_own_key_is_refused_as_in_its_lane(
    here: FullApp,
) -> None:
    owner, other = await here.owner(), await here.owner("globex")
    machine, stranger = await here.key(owner), await here.key(other)
    mine, theirs = [(await actor_of(here, who)).tenant for who in (owner, other)]
    bearer = {"Authorization": machine.headers["Authorization"]}
    for tenant in (mine, "acme"):
        assert await statuses(here, {**bearer, "x-tenant-id": tenant}) == {200}
    for tenant in (theirs, "globex", "", "ACME", "nobody", "\x00"):
        assert await statuses(here, {**bearer, "x-tenant-id": tenant}) == {401}, tenant
    lane = {"x-api-key": token_of(stranger), "x-tenant-id": "globex"}
    assert await statuses(here, lane) == {200}
    assert await statuses(here, {**bearer, **lane}) == {401}


async def test_the_keys_of_people_and_agents_do_not_go_in_that_lane(here: FullApp) -> None:
    owner = await here.owner()
    made = await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    body = {"name": "own", "kind": "agent", "agentId": made.json()["id"]}
    agent = (await owner.post("/v1/keys", json=body)).json()["key"]
    for key in (token_of(owner), agent):
        assert await statuses(here, {"x-api-key": key, "x-tenant-id": "acme"}) == {401}
        answer = await here.as_(key).get(FILES)
        assert answer.status_code == 200


async def test_a_service_that_is_bound_to_an_agent_stays_so_in_its_lane(here: FullApp) -> None:
    owner = await here.owner()
    for slug in ("marco", "polo"):
        await owner.post("/v1/agents", json={"slug": slug, "name": slug})
    id = (await owner.get("/v1/agents/marco")).json()["id"]
    key = token_of(await here.key(owner, agent=id))
    headers = {"x-api-key": key, "x-tenant-id": "acme"}
    for name, status in (("marco", 200), ("polo", 404)):
        body = {"action": "list", "agentId": name}
        answer = await here.as_(None).post(URL, json=body, headers=headers)
        assert answer.status_code == status


async def test_an_authorization_may_leave_out_the_word_bearer(here: FullApp) -> None:
    token = token_of(await here.owner())
    for good in (token, f"Bearer {token}", f"bearer {token}", f"Bearer   {token} "):
        assert await statuses(here, {"Authorization": good}) == {200}, good
    for bad in (
        "",
        "Bearer",
        "Bearer ",
        f"Basic {token}",
        f"{token} x",
        f"Bearer{token}",
        token[:-1],
    ):
        assert await statuses(here, {"Authorization": bad}) == {401}, bad


async def test_where_the_authorization_fails_the_lane_is_tried(here: FullApp) -> None:
    owner = await here.owner()
    lane = {"x-api-key": token_of(await here.key(owner)), "x-tenant-id": "acme"}
    assert await statuses(here, {"Authorization": "Bearer expired", **lane}) == {200}
    assert await statuses(
        here, {"Authorization": "Bearer expired", **lane, "x-tenant-id": "x"}
    ) == {401}
    made = await here.as_(None).post("/v1/agents", json={"slug": "a", "name": "a"}, headers=lane)
    assert made.status_code == 403
    both = {"Authorization": owner.headers["Authorization"], **lane}
    made = await here.as_(None).post("/v1/agents", json={"slug": "a", "name": "a"}, headers=both)
    assert made.status_code == 201


async def test_a_revoked_key_is_refused_in_its_lane_at_once(here: FullApp) -> None:
    owner = await here.owner()
    made = (await owner.post("/v1/keys", json={"name": "a", "kind": "service"})).json()
    lane = {"x-api-key": made["key"], "x-tenant-id": "acme"}
    assert await statuses(here, lane) == {200}
    assert (await owner.delete(f"/v1/keys/{made['id']}")).status_code == 204
    assert await statuses(here, lane) == {401}
