"""Moves and copies over REST: the file keeps its id, and its history goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import open_full_app
from tests.support.rest_tenant import create_overlay_agent

pytestmark = pytest.mark.anyio

ROOTS = ("workspaces/team", "agents/marco", "templates/sales", "defaults")


@pytest.fixture
async def ada(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async with open_full_app(tmp_path) as opened:
        owner = await opened.owner()
        await create_overlay_agent(owner)
        yield owner


async def put(client: httpx.AsyncClient, root: str, path: str, text: str) -> dict[str, Any]:
    response = await client.put(f"/v1/{root}/files/{path}", json={"content": text})
    assert response.status_code == 200, response.text
    file: dict[str, Any] = response.json()
    return file


async def move(
    client: httpx.AsyncClient, root: str, source: str, target: str, op: str = "move", **more: Any
) -> httpx.Response:
    return await client.post(f"/v1/{root}/{op}", json={"from": source, "to": target, **more})


async def history(client: httpx.AsyncClient, root: str, path: str) -> list[dict[str, Any]]:
    """All pages of a history, two versions each."""
    rows: list[dict[str, Any]] = []
    query = {"limit": "2"}
    while True:
        page = (await client.get(f"/v1/{root}/files/{path}/history", params=query)).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        query["cursor"] = page["next"]


@pytest.mark.parametrize("root", ROOTS)
async def test_the_history_of_a_moved_file_goes_on_at_its_earlier_paths(
    ada: httpx.AsyncClient, root: str
) -> None:
    first = await put(ada, root, "notes/a.md", "one")
    await put(ada, root, "notes/a.md", "two")
    assert (await move(ada, root, "notes/a.md", "notes/b.md")).status_code == 200
    await put(ada, root, "notes/b.md", "three")
    moved = await move(ada, root, "notes/b.md", "notes/c.md")
    [result] = moved.json()["results"]
    last = await put(ada, root, "notes/c.md", "four")

    rows = await history(ada, root, "notes/c.md")
    facts = [(row["path"], row["version"], row["source"]) for row in rows]
    assert facts == [
        ("notes/c.md", 2, None),
        ("notes/c.md", 1, {"kind": "move", "path": "notes/b.md", "version": 2}),
        ("notes/b.md", 2, None),
        ("notes/b.md", 1, {"kind": "move", "path": "notes/a.md", "version": 2}),
        ("notes/a.md", 2, None),
        ("notes/a.md", 1, None),
    ]
    assert {row["fileId"] for row in rows} == {first["fileId"]}
    assert first["fileId"] == result["fileId"] == last["fileId"]
    for row in rows:
        url = f"/v1/{root}/files/{row['path']}"
        file = (await ada.get(url, params={"version": row["version"]})).json()
        assert file["sha256"] == row["sha256"]
    assert (await ada.get(f"/v1/{root}/files/notes/b.md/diff?to=1")).text == ""


@pytest.mark.parametrize("root", ROOTS)
async def test_a_file_that_moves_back_lists_each_version_once(
    ada: httpx.AsyncClient, root: str
) -> None:
    first = await put(ada, root, "notes/a.md", "one")
    await move(ada, root, "notes/a.md", "notes/b.md")
    [back] = (await move(ada, root, "notes/b.md", "notes/a.md")).json()["results"]
    rows = await history(ada, root, "notes/a.md")
    assert [(row["path"], row["version"]) for row in rows] == [
        ("notes/a.md", 3),
        ("notes/a.md", 2),
        ("notes/a.md", 1),
        ("notes/b.md", 1),
    ]
    assert back["fileId"] == first["fileId"]


@pytest.mark.parametrize("root", ROOTS)
async def test_a_copy_has_its_own_id_and_tells_its_source(
    ada: httpx.AsyncClient, root: str
) -> None:
    first = await put(ada, root, "notes/a.md", "one")
    [copy] = (await move(ada, root, "notes/a.md", "notes/b.md", "copy")).json()["results"]
    assert copy["fileId"] != first["fileId"]
    [row] = await history(ada, root, "notes/b.md")
    assert row["source"] == {"kind": "copy", "path": "notes/a.md", "version": 1}
    assert (await ada.get(f"/v1/{root}/files/notes/a.md")).json()["etag"] == first["etag"]


@pytest.mark.parametrize("root", ROOTS)
async def test_a_move_replaces_its_target_unless_it_must_not_exist(
    ada: httpx.AsyncClient, root: str
) -> None:
    await put(ada, root, "notes/a.md", "a")
    target = await put(ada, root, "notes/b.md", "b")
    refused = await move(ada, root, "notes/a.md", "notes/b.md", ifNoneMatch="*")
    assert (refused.status_code, refused.json()["error"]) == (409, "workspace_conflict")
    stale = await move(ada, root, "notes/a.md", "notes/b.md", ifMatch='"v7"')
    assert stale.status_code == 409
    [moved] = (await move(ada, root, "notes/a.md", "notes/b.md")).json()["results"]
    assert moved["version"] == 2
    assert moved["fileId"] != target["fileId"]
    assert (await ada.get(f"/v1/{root}/files/notes/b.md")).json()["content"] == "a"
    absent = await move(ada, root, "notes/a.md", "notes/c.md")
    assert absent.status_code == 404


async def test_an_inherited_file_can_be_copied_but_not_moved(ada: httpx.AsyncClient) -> None:
    root = "agents/marco"
    refused = await move(ada, root, "SOUL.md", "notes/soul.md")
    assert refused.status_code == 404
    assert refused.json()["message"] == "SOUL.md is inherited: it can be copied, not moved"
    copied = await move(ada, root, "SOUL.md", "notes/soul.md", "copy")
    assert copied.status_code == 200
    raw = (await ada.get(f"/v1/{root}/files/notes/soul.md?raw=true")).json()
    assert raw["content"] == "{{AGENT_NAME}} is brisk"

    await put(ada, root, "SOUL.md", "my own")
    assert (await move(ada, root, "SOUL.md", "notes/own.md")).status_code == 200
    assert (await ada.get(f"/v1/{root}/files/SOUL.md")).json()["source"] == "template"


async def test_a_directory_lists_its_files_and_directories(ada: httpx.AsyncClient) -> None:
    root = "workspaces/team"
    for path in ("a.md", "docs/b.md", "docs/deep/c.md", "docs/deep/d.md"):
        await put(ada, root, path, "12345")
    assert (
        await ada.post(f"/v1/{root}/directories", json={"path": "docs/empty"})
    ).status_code == 200

    async def entries(prefix: str) -> list[tuple[str, str, int]]:
        query = {"prefix": prefix, "depth": "1"}
        rows = (await ada.get(f"/v1/{root}/files", params=query)).json()["files"]
        return [(row["path"], row["type"], row["size"]) for row in rows]

    assert await entries("") == [("a.md", "file", 5), ("docs", "directory", 15)]
    assert await entries("docs/") == [
        ("docs/b.md", "file", 5),
        ("docs/deep", "directory", 10),
        ("docs/empty", "directory", 0),
    ]
    assert await entries("docs/empty/") == []
    listed = await ada.get(f"/v1/{root}/files?depth=1")
    headers = {"If-None-Match": listed.headers["etag"]}
    assert (await ada.get(f"/v1/{root}/files?depth=1", headers=headers)).status_code == 304
    assert (await ada.get(f"/v1/{root}/files", headers=headers)).status_code == 200
    assert (await ada.get(f"/v1/{root}/files?depth=2")).status_code == 400
    for query in ("last=1&depth=1", "last=0", "last=1001", "last=x"):
        assert (await ada.get(f"/v1/{root}/files?{query}")).status_code == 400
    last = await ada.get(f"/v1/{root}/files?prefix=docs/&last=1")
    assert [row["path"] for row in last.json()["files"]] == ["docs/deep/d.md"]
    headers = {"If-None-Match": last.headers["etag"]}
    for count, status in ((1, 304), (2, 200)):
        again = await ada.get(f"/v1/{root}/files?prefix=docs/&last={count}", headers=headers)
        assert again.status_code == status


@pytest.mark.parametrize("directory", ("d" * 200 + "/" + "e" * 200, "Cafe\u0301"))
async def test_every_directory_that_a_path_may_have_is_listed(
    ada: httpx.AsyncClient, directory: str
) -> None:
    """Also a long one, and one whose name is spelled with a combining accent."""
    root = "workspaces/team"
    path = (await put(ada, root, f"{directory}/a.md", "a"))["path"]
    for query in ({}, {"depth": "1"}):
        listed = await ada.get(f"/v1/{root}/files", params={"prefix": f"{directory}/", **query})
        assert listed.status_code == 200, listed.text
        assert [row["path"] for row in listed.json()["files"]] == [path]


@pytest.mark.parametrize("root", ("host/workspace", *ROOTS))
async def test_an_empty_directory_exists_until_it_is_removed(
    ada: httpx.AsyncClient, root: str
) -> None:
    async def names() -> list[str]:
        rows = (await ada.get(f"/v1/{root}/files?depth=1")).json()["files"]
        names_of_rows = [row["path"] for row in rows if row["type"] == "directory"]
        return [path for path in names_of_rows if path != "memory"]

    created = await ada.post(f"/v1/{root}/directories", json={"path": "empty/inner"})
    assert created.status_code == 200, created.text
    again = await ada.post(f"/v1/{root}/directories", json={"path": "empty/inner"})
    assert again.json() | {"results": []} == created.json() | {"results": []}
    assert await names() == ["empty"]
    assert (await ada.get(f"/v1/{root}/files/empty/inner")).status_code == 404
    assert (await ada.delete(f"/v1/{root}/directories/empty")).status_code == 409
    moved = await move(ada, root, "empty", "other")
    assert moved.status_code == 200, moved.text
    assert await names() == ["other"]
    assert (await ada.delete(f"/v1/{root}/directories/other/inner")).status_code == 200
    assert await names() == []
    assert (await ada.delete(f"/v1/{root}/directories/other/inner")).status_code == 404


async def test_a_directory_cannot_take_the_place_of_a_file(ada: httpx.AsyncClient) -> None:
    root = "agents/marco"
    await put(ada, root, "notes/a.md", "a")
    for path in ("notes/a.md", "notes/a.md/below", "SOUL.md"):
        refused = await ada.post(f"/v1/{root}/directories", json={"path": path})
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict"), path
    await ada.post(f"/v1/{root}/directories", json={"path": "notes/dir"})
    refused = await ada.put(f"/v1/{root}/files/notes/dir", json={"content": "x"})
    assert refused.status_code == 409
