"""What a policy would do, told before and seen after, through the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
PINS = {"classes": [{"pattern": "docs/**", "class": "pinned"}]}


@pytest.fixture(params=STORES)
async def here(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(here: FullApp) -> httpx.AsyncClient:
    owner = await here.owner()
    for slug in ("sales", "help"):
        await owner.post("/v1/templates", json={"slug": slug, "name": slug})
    for slug, template in (("ann", "sales"), ("bea", "sales"), ("cem", "help")):
        new = {"slug": slug, "name": slug, "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    for where in ("templates/sales/files/docs/a.md", "agents/cem/files/docs/b.md"):
        assert (await owner.put(f"/v1/{where}", json={"content": "x"})).status_code == 200
    return owner


async def previewed(who: httpx.AsyncClient, policy: dict[str, Any]) -> dict[str, Any]:
    answer = await who.post("/v1/policy/preview", json=policy)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_would_change_is_told_and_nothing_changes(owner: httpx.AsyncClient) -> None:
    before = (await owner.get("/v1/policy")).json()
    told = await previewed(owner, PINS)
    both = {"from": "live", "to": "pinned"}
    assert told == {
        "changes": [
            {"path": "docs/a.md", **both, "agents": 2},
            {"path": "docs/b.md", **both, "agents": 1},
        ],
        "count": 2,
        "loosens": False,
    }
    assert (await owner.get("/v1/policy")).json() == before
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    assert await previewed(owner, PINS) == {"changes": [], "count": 0, "loosens": False}


async def test_what_loosens_is_just_what_needs_a_reason(owner: httpx.AsyncClient) -> None:
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    told = await previewed(owner, {})
    assert told["loosens"]
    assert {row["to"] for row in told["changes"]} == {"live"}
    assert (await owner.put("/v1/policy", json={})).status_code == 400
    await owner.delete("/v1/templates/sales/files/docs/a.md")
    for slug in ("ann", "bea", "cem"):
        assert (await previewed(owner, {}))["loosens"]
        assert (await owner.put("/v1/policy", json={})).status_code == 400
        assert (await owner.delete(f"/v1/agents/{slug}")).status_code == 204
    assert not (await previewed(owner, {}))["loosens"]
    assert (await owner.put("/v1/policy", json={})).status_code == 200


async def test_only_who_may_change_the_policy_may_look(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    reader = await here.key(owner, Permission.TENANT_READ)
    assert (await reader.post("/v1/policy/preview", json=PINS)).status_code == 403
    for body in (b"", b"[]", b'{"classes": [{"pattern": "../x", "class": "live"}]}'):
        headers = {"Content-Type": "application/json"}
        answer = await owner.post("/v1/policy/preview", content=body, headers=headers)
        assert answer.status_code == 400, answer.text
    stranger = await here.owner("globex")
    assert (await previewed(stranger, PINS))["changes"] == []
