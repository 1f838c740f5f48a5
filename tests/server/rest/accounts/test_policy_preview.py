"""A policy preview reports the changes that a put would make."""

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
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    for slug in ("sales", "help"):
        await owner.post("/v1/templates", json={"slug": slug, "name": slug})
    for slug, template in (("ann", "sales"), ("bea", "sales"), ("cem", "help")):
        new = {"slug": slug, "name": slug, "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    for path in ("templates/sales/files/docs/a.md", "agents/cem/files/docs/b.md"):
        assert (await owner.put(f"/v1/{path}", json={"content": "x"})).status_code == 200
    return owner


async def preview(client: httpx.AsyncClient, policy: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/policy/preview", json=policy)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_preview_lists_changes_and_changes_nothing(owner: httpx.AsyncClient) -> None:
    before = (await owner.get("/v1/policy")).json()
    result = await preview(owner, PINS)
    both = {"from": "live", "to": "pinned"}
    assert result == {
        "changes": [
            {"path": "docs/a.md", **both, "agents": 2},
            {"path": "docs/b.md", **both, "agents": 1},
        ],
        "count": 2,
        "loosens": False,
    }
    assert (await owner.get("/v1/policy")).json() == before
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    assert await preview(owner, PINS) == {"changes": [], "count": 0, "loosens": False}


async def test_a_policy_that_loosens_needs_a_reason(owner: httpx.AsyncClient) -> None:
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    result = await preview(owner, {})
    assert result["loosens"]
    assert {row["to"] for row in result["changes"]} == {"live"}
    assert (await owner.put("/v1/policy", json={})).status_code == 400
    await owner.delete("/v1/templates/sales/files/docs/a.md")
    for slug in ("ann", "bea", "cem"):
        assert (await preview(owner, {}))["loosens"]
        assert (await owner.put("/v1/policy", json={})).status_code == 400
        assert (await owner.delete(f"/v1/agents/{slug}")).status_code == 204
    assert not (await preview(owner, {}))["loosens"]
    assert (await owner.put("/v1/policy", json={})).status_code == 200


async def test_a_preview_needs_permission_to_change_the_policy(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    reader = await server.key(owner, Permission.TENANT_READ)
    assert (await reader.post("/v1/policy/preview", json=PINS)).status_code == 403
    for body in (b"", b"[]", b'{"classes": [{"pattern": "../x", "class": "live"}]}'):
        headers = {"Content-Type": "application/json"}
        answer = await owner.post("/v1/policy/preview", content=body, headers=headers)
        assert answer.status_code == 400, answer.text
    other_owner = await server.owner("globex")
    assert (await preview(other_owner, PINS))["changes"] == []
