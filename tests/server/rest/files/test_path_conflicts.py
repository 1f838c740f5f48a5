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


async def test_a_template_may_conflict_with_an_agents_file_and_the_agent_can_resolve_it(
    owner: httpx.AsyncClient,
) -> None:
    await write(owner, AGENT, "plan")
    assert (await write(owner, SALES, "plan/b.md")).status_code == 200
    paths = [row["path"] for row in (await owner.get(f"{AGENT}/files")).json()["files"]]
    assert [path for path in paths if path.startswith("plan")] == ["plan", "plan/b.md"]
    assert (await write(owner, AGENT, "plan")).status_code == 200
    await assert_conflict(owner, AGENT, "plan/b.md/c.md", "plan")
    assert (await owner.delete(f"{AGENT}/files/plan")).status_code == 204
    await assert_conflict(owner, AGENT, "plan", "plan/b.md")


async def test_restore_and_first_accept_check_for_conflicts_too(
    owner: httpx.AsyncClient,
) -> None:
    await write(owner, AGENT, "plan")
    await owner.delete(f"{AGENT}/files/plan")
    await write(owner, AGENT, "plan/b.md")
    again = await owner.post(f"{AGENT}/files/plan/restore", json={"version": 1})
    assert (again.status_code, again.json()["error"]) == (409, "conflict")

    rules = {"classes": [{"pattern": "rules", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=rules)).status_code == 200
    await write(owner, AGENT, "rules/mine.md")
    await write(owner, SALES, "rules")
    sha = (await owner.get(f"{SALES}/files/rules")).json()["sha256"]
    for pin in (f"{AGENT}/pins/rules/accept", f"{SALES}/pins/rules/accept"):
        answer = await owner.post(pin, json={"sha256": sha})
        assert "rules/mine.md" in answer.text
    assert answer.json()["failed"] == 1
    await owner.delete(f"{AGENT}/files/rules/mine.md")
    assert (await owner.post(pin, json={"sha256": sha})).json()["accepted"] == 1
    await assert_conflict(owner, AGENT, "rules/mine.md", "rules")
