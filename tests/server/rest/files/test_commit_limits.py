"""Limits, encodings, letter case and free paths of the files of one commit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import open_full_app
from tests.support.rest_tenant import create_overlay_agent

pytestmark = pytest.mark.anyio
PUTS = [{"op": "put", "path": path, "content": "x"} for path in ("notes/file", "notes/dir/a.md")]


@pytest.fixture
async def ada(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async with open_full_app(tmp_path) as server:
        owner = await server.owner()
        await create_overlay_agent(owner)
        yield owner


async def commit(client: httpx.AsyncClient, root: str, *writes: dict[str, Any]) -> httpx.Response:
    return await client.post(f"/v1/{root}/commits", json={"writes": writes})


async def test_limits_hold_for_the_whole_commit(ada: httpx.AsyncClient) -> None:
    await ada.put("/v1/policy", json={"limits": {"maxFiles": 2, "maxFileBytes": 1024}})
    root = "host/workspace"
    three = [{"op": "put", "path": f"{n}.md", "content": "x"} for n in range(3)]
    assert (await commit(ada, root, *three)).status_code == 413
    assert (await ada.get(f"/v1/{root}/files")).json() == {"files": []}
    big = {"op": "put", "path": "b.md", "content": "x" * 1025}
    refused = await commit(ada, root, three[0], big)
    assert refused.status_code == 413
    assert [row["path"] for row in refused.json()["details"]["failed"]] == ["b.md"]
    assert (await commit(ada, root, *three[:2])).status_code == 200


async def test_binary_contents_are_put_as_base64(ada: httpx.AsyncClient) -> None:
    write = {"op": "put", "path": "a.bin", "content": "/wA=", "encoding": "base64"}
    response = await commit(ada, "workspaces/team", write | {"contentType": "image/png"})
    [row] = response.json()["results"]
    assert row["size"] == 2


async def test_new_paths_of_one_commit_collide_in_letter_case(ada: httpx.AsyncClient) -> None:
    classes = [{"pattern": "rules/**", "class": "pinned"}]
    assert (await ada.put("/v1/policy", json={"classes": classes})).status_code == 200
    writes = [{"op": "put", "path": path, "content": "x"} for path in ("rules/A.md", "rules/a.md")]
    refused = await commit(ada, "templates/sales", *writes)
    assert refused.status_code == 400, refused.text
    assert (await commit(ada, "templates/sales", writes[0])).status_code == 200
    assert (await commit(ada, "templates/sales", writes[1])).status_code == 400


@pytest.mark.parametrize("root", ("shared", "agents/marco", "templates/sales", "defaults"))
async def test_every_path_that_is_not_free_is_named_beside_failed_conditions(
    ada: httpx.AsyncClient, root: str
) -> None:
    if root == "shared":
        created = await ada.post("/accounts/me/workspaces", json={"name": "shared"})
        root = f"workspaces/{created.json()['workspaceId']}"
    await commit(ada, root, *PUTS)
    await ada.post(f"/v1/{root}/directories", json={"path": "notes/empty"})
    before = (await ada.get(f"/v1/{root}/files")).json()
    occupied = [
        {"op": "put", "path": "notes/new.md", "content": "new"},
        {"op": "put", "path": "notes/file/a.md", "content": "y"},
        {"op": "put", "path": "notes/file/b.md", "content": "y"},
        {"op": "put", "path": "notes/dir", "content": "y"},
        {"op": "copy", "path": "notes/dir/a.md", "to": "notes/empty"},
        {"op": "put", "path": "notes/other", "content": "y"},
        {"op": "put", "path": "notes/other/below", "content": "y"},
    ]
    stale = {"op": "delete", "path": "notes/absent.md", "ifMatch": "*"}
    free = {"op": "delete", "path": "notes/file", "ifMatch": '"v9"'}

    response = await commit(ada, root, *occupied[:5])
    assert (response.status_code, response.json()["error"]) == (409, "conflict")
    assert [row["index"] for row in response.json()["details"]["failed"]] == [1, 2, 3, 4]
    response = await commit(ada, root, *occupied, stale)
    assert response.json()["error"] == "workspace_conflict"
    assert [row["index"] for row in response.json()["details"]["failed"]] == [1, 2, 3, 4, 6, 7]
    response = await commit(ada, root, *occupied[:3], free)
    assert [row["index"] for row in response.json()["details"]["failed"]] == [3]
    assert (await ada.get(f"/v1/{root}/files")).json() == before
