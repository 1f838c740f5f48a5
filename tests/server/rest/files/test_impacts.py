"""The predicted impact of an edit matches what the edit does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over
from tests.support.tenants import sign_in_as

pytestmark = pytest.mark.anyio
SALES, DEFAULTS = "/v1/templates/sales/files", "/v1/defaults/files"
AGENTS = ("ann", "bea", "cem", "dan")


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def put(client: httpx.AsyncClient, url: str, text: str) -> None:
    response = await client.put(url, json={"content": text, "acceptTemplateUpdate": True})
    assert response.status_code == 200, response.text


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    """Owner of four agents: two follow sales, one help, one no template."""
    owner = await server.owner()
    for slug in ("sales", "help"):
        await owner.post("/v1/templates", json={"slug": slug, "name": slug})
    for slug, template in zip(AGENTS, ("sales", "sales", "help", None), strict=True):
        new = {"slug": slug, "name": slug, "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def impact(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    answer = await client.get(f"{url}/impact")
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    assert result["followers"] == result["changes"] + result["asked"] + result["shadowed"]
    return result


async def list_served(client: httpx.AsyncClient, path: str) -> list[tuple[str | None, bool]]:
    """Every agent's content of a file, and whether an update is available."""
    answers = [await client.get(f"/v1/agents/{slug}/files/{path}") for slug in AGENTS]
    rows = [answer.json() for answer in answers]
    return [(row.get("content"), row.get("updateAvailable", False)) for row in rows]


async def apply_edit(client: httpx.AsyncClient, layer: str, path: str) -> tuple[int, int]:
    """Edit a file; count the agents with new content and with a new update."""
    before = await list_served(client, path)
    await put(client, f"{layer}/{path}", f"edited for {{{{AGENT_NAME}}}} in {layer}")
    pairs = list(zip(before, await list_served(client, path), strict=True))
    changed = sum(was[0] != now[0] for was, now in pairs)
    return changed, sum(now[1] and not was[1] for was, now in pairs)


async def test_the_predicted_impact_matches_the_edit(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/ann/files/SOUL.md", "of ann's own")
    await put(owner, "/v1/templates/help/files/SOUL.md", "of the template's own")
    predicted = await impact(owner, f"{SALES}/SOUL.md")
    assert predicted == {
        **{"path": "SOUL.md", "class": "live", "followers": 2},
        **{"changes": 1, "asked": 0, "shadowed": 1},
    }
    assert (await apply_edit(owner, SALES, "SOUL.md"))[0] == predicted["changes"]
    predicted = await impact(owner, f"{DEFAULTS}/SOUL.md")
    assert (predicted["followers"], predicted["changes"], predicted["shadowed"]) == (4, 1, 3)
    assert (await apply_edit(owner, DEFAULTS, "SOUL.md"))[0] == predicted["changes"]


async def test_a_pinned_file_needs_review_even_by_agents_that_override_it(
    owner: httpx.AsyncClient,
) -> None:
    await put(owner, "/v1/agents/ann/files/GUARDRAILS.md", "of ann's own")
    assert (await impact(owner, f"{DEFAULTS}/GUARDRAILS.md"))["asked"] == 4
    for layer, shadowed in ((SALES, 0), (DEFAULTS, 2)):
        predicted = await impact(owner, f"{layer}/GUARDRAILS.md")
        assert predicted["class"] == "pinned"
        assert (predicted["changes"], predicted["asked"], predicted["shadowed"]) == (0, 2, shadowed)
        assert await apply_edit(owner, layer, "GUARDRAILS.md") == (0, 2)


async def test_a_managed_file_changes_at_once(owner: httpx.AsyncClient) -> None:
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    person = (await owner.post("/v1/people", json=bob)).json()["id"]
    await owner.patch("/v1/agents/ann", json={"humanPairId": person})
    predicted = await impact(owner, f"{DEFAULTS}/USER.md")
    assert (predicted["class"], predicted["changes"], predicted["shadowed"]) == ("managed", 4, 0)
    assert await apply_edit(owner, DEFAULTS, "USER.md") == (4, 0)


async def test_a_new_file_would_reach_its_followers(
    owner: httpx.AsyncClient,
) -> None:
    predicted = await impact(owner, f"{SALES}/docs/new%20page.md")
    assert (predicted["path"], predicted["followers"], predicted["changes"]) == (
        "docs/new page.md",
        2,
        2,
    )
    assert await apply_edit(owner, SALES, "docs/new page.md") == (2, 0)


async def test_impact_needs_tenant_read_in_the_same_tenant(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    other_owner = await server.owner("globex")
    assert (await other_owner.get(f"{SALES}/SOUL.md/impact")).status_code == 404
    assert (await impact(other_owner, f"{DEFAULTS}/SOUL.md"))["followers"] == 0
    machine = await server.key(owner)
    assert (await machine.get(f"{SALES}/SOUL.md/impact")).status_code == 403
    assert (await owner.get(f"{SALES}/a%2F..%2Fb/impact")).status_code == 400


async def test_the_impact_does_not_tell_members_which_files_a_private_agent_has(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    ann = (await owner.post("/v1/people", json=person_named("ann"))).json()["id"]
    bob = (await owner.post("/v1/people", json=person_named("bob"))).json()["id"]
    assert (await owner.patch("/v1/agents/ann", json={"ownerId": ann})).status_code == 200
    await put(owner, "/v1/agents/ann/files/memory/merger.md", "we merge")
    as_ann, as_bob = [server.as_(await sign_in_as(owner, id)) for id in (ann, bob)]
    for url in (f"{SALES}/memory/merger.md", f"{DEFAULTS}/memory/merger.md"):
        without_file = await impact(as_bob, url.replace("merger", "other"))
        assert await impact(as_bob, url) == without_file | {"path": "memory/merger.md"}
        assert [(await impact(client, url))["shadowed"] for client in (owner, as_ann)] == [1, 1]


def person_named(name: str) -> dict[str, str]:
    return {"name": name, "email": f"{name}@example.org", "role": "member"}
