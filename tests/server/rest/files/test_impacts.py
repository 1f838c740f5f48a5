"""What an edit of a shared file would do, told before and seen after, through the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

pytestmark = pytest.mark.anyio
SALES, DEFAULTS = "/v1/templates/sales/files", "/v1/defaults/files"
AGENTS = ("ann", "bea", "cem", "dan")


@pytest.fixture(params=STORES)
async def here(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def put(who: httpx.AsyncClient, where: str, text: str) -> None:
    done = await who.put(where, json={"content": text, "acceptTemplateUpdate": True})
    assert done.status_code == 200, done.text


@pytest.fixture
async def owner(here: FullApp) -> httpx.AsyncClient:
    """Two agents follow a template, one another, one none."""
    owner = await here.owner()
    for slug in ("sales", "help"):
        await owner.post("/v1/templates", json={"slug": slug, "name": slug})
    for slug, template in zip(AGENTS, ("sales", "sales", "help", None), strict=True):
        new = {"slug": slug, "name": slug, "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def impact(who: httpx.AsyncClient, where: str) -> dict[str, Any]:
    answer = await who.get(f"{where}/impact")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["followers"] == found["changes"] + found["asked"] + found["shadowed"]
    return found


async def served(who: httpx.AsyncClient, path: str) -> list[tuple[str | None, bool]]:
    """What each agent has of a file, and whether something newer is offered."""
    answers = [await who.get(f"/v1/agents/{slug}/files/{path}") for slug in AGENTS]
    rows = [answer.json() for answer in answers]
    return [(row.get("content"), row.get("updateAvailable", False)) for row in rows]


async def edited(who: httpx.AsyncClient, layer: str, path: str) -> tuple[int, int]:
    """How many are served something else by an edit, and how many are told of an update."""
    before = await served(who, path)
    await put(who, f"{layer}/{path}", f"edited for {{{{AGENT_NAME}}}} in {layer}")
    pairs = list(zip(before, await served(who, path), strict=True))
    changed = sum(was[0] != now[0] for was, now in pairs)
    return changed, sum(now[1] and not was[1] for was, now in pairs)


async def test_what_is_told_is_what_an_edit_does(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/ann/files/SOUL.md", "of ann's own")
    await put(owner, "/v1/templates/help/files/SOUL.md", "of the template's own")
    told = await impact(owner, f"{SALES}/SOUL.md")
    assert told == {
        **{"path": "SOUL.md", "class": "live", "followers": 2},
        **{"changes": 1, "asked": 0, "shadowed": 1},
    }
    assert (await edited(owner, SALES, "SOUL.md"))[0] == told["changes"]
    told = await impact(owner, f"{DEFAULTS}/SOUL.md")
    assert (told["followers"], told["changes"], told["shadowed"]) == (4, 1, 3)
    assert (await edited(owner, DEFAULTS, "SOUL.md"))[0] == told["changes"]


async def test_a_pinned_file_asks_even_those_who_override_it(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/ann/files/GUARDRAILS.md", "of ann's own")
    assert (await impact(owner, f"{DEFAULTS}/GUARDRAILS.md"))["asked"] == 4
    for layer, shadowed in ((SALES, 0), (DEFAULTS, 2)):
        told = await impact(owner, f"{layer}/GUARDRAILS.md")
        assert told["class"] == "pinned"
        assert (told["changes"], told["asked"], told["shadowed"]) == (0, 2, shadowed)
        assert await edited(owner, layer, "GUARDRAILS.md") == (0, 2)


async def test_a_managed_file_follows_at_once(owner: httpx.AsyncClient) -> None:
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    person = (await owner.post("/v1/people", json=bob)).json()["id"]
    await owner.patch("/v1/agents/ann", json={"humanPairId": person})
    told = await impact(owner, f"{DEFAULTS}/USER.md")
    assert (told["class"], told["changes"], told["shadowed"]) == ("managed", 4, 0)
    assert await edited(owner, DEFAULTS, "USER.md") == (4, 0)


async def test_a_file_that_is_not_there_yet_would_reach_its_followers(
    owner: httpx.AsyncClient,
) -> None:
    told = await impact(owner, f"{SALES}/docs/new%20page.md")
    assert (told["path"], told["followers"], told["changes"]) == ("docs/new page.md", 2, 2)
    assert await edited(owner, SALES, "docs/new page.md") == (2, 0)


async def test_who_may_not_know_the_tenant_is_told_nothing(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    stranger = await here.owner("globex")
    assert (await stranger.get(f"{SALES}/SOUL.md/impact")).status_code == 404
    assert (await impact(stranger, f"{DEFAULTS}/SOUL.md"))["followers"] == 0
    machine = await here.key(owner)
    assert (await machine.get(f"{SALES}/SOUL.md/impact")).status_code == 403
    assert (await owner.get(f"{SALES}/a%2F..%2Fb/impact")).status_code == 400
