"""No path differs from a pinned or managed one, or a parent of one, in letter case alone."""

from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.anyio
AGENT, SALES, DEFAULTS = "/v1/agents/marco", "/v1/templates/sales", "/v1/defaults"
RULES = [{"pattern": pattern, "class": "pinned"} for pattern in ("*.md", "law/**", "a/b/rules.md")]


async def write(client: httpx.AsyncClient, layer: str, path: str) -> httpx.Response:
    body = {"content": "x", "acceptTemplateUpdate": True}
    return await client.put(f"{layer}/files/{path}", json=body)


@pytest.fixture(autouse=True)
async def marco(owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    assert (await write(owner, SALES, "law/Keep/old.md")).status_code == 200
    policy = {"classes": RULES, "confirm": True}
    assert (await owner.put("/v1/policy", json=policy)).status_code == 200


@pytest.mark.parametrize("layer", [AGENT, SALES, DEFAULTS])
@pytest.mark.parametrize("path", ["guardrails.md", "soul.md", "law/keep/new.md", "A/c", "a/B"])
async def test_a_path_that_differs_in_letter_case_is_refused_in_every_layer(
    owner: httpx.AsyncClient, layer: str, path: str
) -> None:
    answer = await write(owner, layer, path)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert "collides on some file systems" in answer.json()["message"]


@pytest.mark.parametrize("layer", [AGENT, SALES, DEFAULTS])
async def test_other_paths_of_a_wildcard_are_written(owner: httpx.AsyncClient, layer: str) -> None:
    for path in ("law/Keep/new.md", "law/Keep/old.md", "plan.md", "SOUL.md", "a/b/c"):
        assert (await write(owner, layer, path)).status_code == 200, path


async def test_an_agent_moves_to_no_template_whose_files_collide_with_its_own(
    owner: httpx.AsyncClient,
) -> None:
    await owner.post("/v1/agents", json={"slug": "nora", "name": "Nora"})
    nora = "/v1/agents/nora"
    assert (await write(owner, nora, "law/Other/own.md")).status_code == 200
    assert (await write(owner, SALES, "law/other/new.md")).status_code == 200
    refused = await owner.patch(nora, json={"templateId": "sales"})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert refused.json()["details"] == {"path": "law/other/new.md"}
    assert (await owner.delete(f"{nora}/files/law/Other/own.md")).status_code == 204
    assert (await owner.patch(nora, json={"templateId": "sales"})).status_code == 200
