"""A name is either a file or a directory in every layer."""

from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.anyio
AGENT, SALES, DEFAULTS = "/v1/agents/marco", "/v1/templates/sales", "/v1/defaults"
OWN = "/v1/host/workspace"


async def write(client: httpx.AsyncClient, layer: str, path: str, **more: object) -> httpx.Response:
    return await client.put(f"{layer}/files/{path}", json={"content": "x", **more})


async def assert_conflict(
    client: httpx.AsyncClient, layer: str, path: str, conflicting: str
) -> None:
    answer = await write(client, layer, path)
    body = answer.json()
    assert (answer.status_code, body["error"]) == (409, "conflict")
    assert path in body["message"]
    assert conflicting in body["message"]
    assert body["details"] == {"path": conflicting}


@pytest.fixture(autouse=True)
async def marco(owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201


@pytest.mark.parametrize("layer", [AGENT, SALES, DEFAULTS])
async def test_a_file_is_no_directory_and_a_directory_no_file(
    owner: httpx.AsyncClient, layer: str
) -> None:
    for path in ("plan", "log/2026/11.md"):
        assert (await write(owner, layer, path)).status_code == 200
    await assert_conflict(owner, layer, "plan/b.md", "plan")
    await assert_conflict(owner, layer, "log", "log/2026/11.md")
    await assert_conflict(owner, layer, "log/2026", "log/2026/11.md")
    for path in ("plan", "log/2026/11.md", "log/2026/12.md", "plan.md"):
        assert (await write(owner, layer, path)).status_code == 200
    assert (await owner.delete(f"{layer}/files/plan")).status_code == 204
    assert (await write(owner, layer, "plan/b.md")).status_code == 200


async def test_a_workspace_has_names_with_slashes_and_no_directories(
    owner: httpx.AsyncClient,
) -> None:
    for path in ("plan", "plan/b.md", "log/2026/11.md", "log"):
        assert (await write(owner, OWN, path)).status_code == 200


async def test_an_agent_cannot_write_a_path_that_conflicts_with_an_inherited_one(
    owner: httpx.AsyncClient,
) -> None:
    await write(owner, SALES, "plan")
    await write(owner, DEFAULTS, "log/a.md")
    await assert_conflict(owner, AGENT, "plan/b.md", "plan")
    await assert_conflict(owner, AGENT, "log", "log/a.md")
    assert (await write(owner, AGENT, "plan")).status_code == 200
    assert (await write(owner, AGENT, "log/a.md")).status_code == 200


@pytest.mark.parametrize("layer", [SALES, DEFAULTS])
async def test_a_shared_layer_cannot_write_a_path_that_conflicts_with_one_of_an_agent(
    owner: httpx.AsyncClient, layer: str
) -> None:
    await write(owner, AGENT, "plan")
    await write(owner, AGENT, "log/a.md")
    await assert_conflict(owner, layer, "plan/b.md", "plan")
    await assert_conflict(owner, layer, "log", "log/a.md")
    assert "agent marco" in (await write(owner, layer, "log")).text
    assert (await owner.delete(f"{AGENT}/files/plan")).status_code == 204
    assert (await write(owner, layer, "plan/b.md")).status_code == 200


async def test_a_template_and_the_defaults_cannot_conflict(owner: httpx.AsyncClient) -> None:
    for first, second in ((SALES, DEFAULTS), (DEFAULTS, SALES)):
        name = first.rpartition("/")[2]
        await write(owner, first, f"{name}.md/x")
        await write(owner, first, f"{name}.txt")
        await assert_conflict(owner, second, f"{name}.md", f"{name}.md/x")
        await assert_conflict(owner, second, f"{name}.txt/x", f"{name}.txt")
        assert (await write(owner, second, f"{name}.md/x")).status_code == 200


async def test_another_template_of_the_tenant_does_not_matter(owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/templates", json={"slug": "care", "name": "Care"})
    await write(owner, SALES, "plan")
    await write(owner, AGENT, "log")
    assert (await write(owner, "/v1/templates/care", "plan/b.md")).status_code == 200
    assert (await write(owner, "/v1/templates/care", "log/b.md")).status_code == 200
    for template in ("care", "sales"):
        moved = await owner.patch("/v1/agents/marco", json={"templateId": template})
        assert moved.status_code == (409 if template == "care" else 200)
    await owner.delete(f"{AGENT}/files/log")
    moved = await owner.patch("/v1/agents/marco", json={"templateId": "care"})
    assert moved.status_code == 200


async def test_a_restore_checks_for_conflicts_too(
    owner: httpx.AsyncClient,
) -> None:
    await write(owner, AGENT, "plan")
    await owner.delete(f"{AGENT}/files/plan")
    await write(owner, AGENT, "plan/b.md")
    again = await owner.post(f"{AGENT}/files/plan/restore", json={"version": 1})
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
