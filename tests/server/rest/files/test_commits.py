"""Commits over REST: many changes of files, applied together or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.rest_tenant import create_overlay_agent

pytestmark = pytest.mark.anyio

ROOTS = ("host/workspace", "workspaces/team", "agents/marco", "templates/sales", "defaults")


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    await create_overlay_agent(owner)
    return owner


async def commit(
    client: httpx.AsyncClient, root: str, *writes: dict[str, Any], **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(f"/v1/{root}/commits", json={"writes": writes}, headers=named)


async def put(client: httpx.AsyncClient, root: str, path: str, text: str = "x") -> dict[str, Any]:
    response = await client.put(f"/v1/{root}/files/{path}", json={"content": text})
    assert response.status_code == 200, response.text
    file: dict[str, Any] = response.json()
    return file


async def texts(client: httpx.AsyncClient, root: str) -> dict[str, str]:
    rows = (await client.get(f"/v1/{root}/files")).json()["files"]
    files = [(await client.get(f"/v1/{root}/files/{row['path']}")).json() for row in rows]
    return {file["path"]: file["content"] for file in files}


@pytest.mark.parametrize("root", ROOTS)
async def test_a_commit_puts_deletes_moves_and_copies_at_once(
    ada: httpx.AsyncClient, root: str
) -> None:
    for path in ("notes/old.md", "notes/kept.md", "notes/gone.md"):
        await put(ada, root, path, path)

    response = await commit(
        ada,
        root,
        {"op": "put", "path": "notes/new.md", "content": "new"},
        {"op": "delete", "path": "notes/gone.md"},
        {"op": "move", "path": "notes/old.md", "to": "notes/moved.md"},
        {"op": "copy", "path": "notes/kept.md", "to": "notes/copy.md"},
    )

    assert response.status_code == 200, response.text
    results = response.json()["results"]
    assert [(row["op"], row["path"], row["from"]) for row in results] == [
        ("put", "notes/new.md", None),
        ("delete", "notes/gone.md", None),
        ("move", "notes/moved.md", "notes/old.md"),
        ("copy", "notes/copy.md", "notes/kept.md"),
    ]
    assert [row["version"] for row in results] == [1, 2, 1, 1]
    contents = await texts(ada, root)
    assert {path: text for path, text in contents.items() if path.startswith("notes/")} == {
        "notes/new.md": "new",
        "notes/moved.md": "notes/old.md",
        "notes/kept.md": "notes/kept.md",
        "notes/copy.md": "notes/kept.md",
    }
    for row in results:
        if row["op"] != "delete":
            file = (await ada.get(f"/v1/{root}/files/{row['path']}")).json()
            assert (file["etag"], file["version"]) == (row["etag"], row["version"])


@pytest.mark.parametrize("root", ROOTS)
async def test_every_failed_condition_is_named_and_nothing_is_written(
    ada: httpx.AsyncClient, root: str
) -> None:
    file = await put(ada, root, "notes/a.md")
    await put(ada, root, "notes/b.md")
    before = await texts(ada, root)

    response = await commit(
        ada,
        root,
        {"op": "put", "path": "notes/new.md", "content": "new"},
        {"op": "put", "path": "notes/a.md", "content": "y", "ifMatch": '"v9"'},
        {"op": "put", "path": "notes/b.md", "content": "y", "ifNoneMatch": "*"},
        {"op": "delete", "path": "notes/absent.md", "ifMatch": "*"},
        {"op": "move", "path": "notes/gone.md", "to": "notes/c.md", "ifMatch": '"v1"'},
    )

    assert response.status_code == 409
    problem = response.json()
    assert problem["error"] == "workspace_conflict"
    assert problem["details"]["currentVersion"] == file["version"]
    failed = [
        {k: v for k, v in row.items() if k != "message"} for row in problem["details"]["failed"]
    ]
    base = {"error": "workspace_conflict"}
    assert failed == [
        base
        | {"index": 1, "op": "put", "path": "notes/a.md", "currentVersion": 1, "ifMatch": '"v9"'},
        base
        | {"index": 2, "op": "put", "path": "notes/b.md", "currentVersion": 1, "ifNoneMatch": "*"},
        base
        | {
            "index": 3,
            "op": "delete",
            "path": "notes/absent.md",
            "currentVersion": 0,
            "ifMatch": "*",
        },
        base
        | {"index": 4, "op": "move", "path": "notes/gone.md", "to": "notes/c.md"}
        | {"currentVersion": 0, "ifMatch": '"v1"'},
    ]
    assert await texts(ada, root) == before


@pytest.mark.parametrize("root", ROOTS)
async def test_conditions_that_hold_are_met_by_a_commit(ada: httpx.AsyncClient, root: str) -> None:
    etag = (await put(ada, root, "notes/a.md"))["etag"]
    other = (await put(ada, root, "notes/b.md"))["etag"]
    response = await commit(
        ada,
        root,
        {"op": "put", "path": "notes/a.md", "content": "y", "ifMatch": etag},
        {
            "op": "move",
            "path": "notes/b.md",
            "to": "notes/c.md",
            "ifMatch": other,
            "ifNoneMatch": "*",
        },
    )
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "writes",
    [
        [],
        [{"op": "put", "path": "a.md"}],
        [{"op": "put", "path": "../a.md", "content": "x"}],
        [{"op": "put", "path": "a.md", "content": "x", "to": "b.md"}],
        [{"op": "put", "path": "a.md", "content": "%", "encoding": "base64"}],
        [{"op": "put", "path": "a.md", "content": "\ud800"}],
        [{"op": "put", "path": "a.md", "content": "x", "contentType": "no"}],
        [{"op": "put", "path": "a.md", "content": "x", "ifNoneMatch": '"v1"'}],
        [{"op": "delete", "path": "a.md", "content": "x"}],
        [{"op": "move", "path": "a.md"}],
        [{"op": "move", "path": "a.md", "to": "a.md"}],
        [{"op": "move", "path": "a", "to": "a/b"}],
        [{"op": "rename", "path": "a.md", "to": "b.md"}],
        [{"op": "put", "path": "a.md", "content": "x"}] * 2,
        [{"op": "put", "path": f"{n}.md", "content": ""} for n in range(1001)],
        [{"op": "copy", "path": "a.md", "to": "b.md"}, {"op": "delete", "path": "a.md"}],
        [
            {"op": "move", "path": "a.md", "to": "b.md"},
            {"op": "move", "path": "c.md", "to": "b.md"},
        ],
    ],
)
async def test_what_is_no_commit_is_a_bad_request(
    ada: httpx.AsyncClient, writes: list[dict[str, Any]]
) -> None:
    await put(ada, "host/workspace", "a.md")
    await put(ada, "host/workspace", "c.md")
    content = json.dumps({"writes": writes})
    response = await ada.post(
        "/v1/host/workspace/commits",
        content=content,
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 400, response.text
    assert await texts(ada, "host/workspace") == {"a.md": "x", "c.md": "x"}


async def test_a_commit_of_an_agent_obeys_the_rules_of_single_writes(
    ada: httpx.AsyncClient,
) -> None:
    refused = await commit(
        ada,
        "agents/marco",
        {"op": "put", "path": "notes/a.md", "content": "x"},
        {"op": "put", "path": "GUARDRAILS.md", "content": "x"},
        {"op": "delete", "path": "SOUL.md"},
        {"op": "put", "path": "USER.md", "content": "x"},
        {"op": "put", "path": "guardrails.MD", "content": "x"},
        {"op": "move", "path": "ROUTER.md", "to": "notes/r.md"},
    )
    assert refused.status_code == 403
    failed = refused.json()["details"]["failed"]
    assert [(row["index"], row["error"]) for row in failed] == [(1, "forbidden"), (3, "forbidden")]

    missing = await commit(
        ada,
        "agents/marco",
        {"op": "delete", "path": "SOUL.md"},
        {"op": "put", "path": "guardrails.MD", "content": "x"},
    )
    assert missing.status_code == 400
    assert [row["index"] for row in missing.json()["details"]["failed"]] == [0, 1]

    accepted = await commit(
        ada,
        "agents/marco",
        {"op": "put", "path": "GUARDRAILS.md", "content": "x", "acceptTemplateUpdate": True},
        {"op": "put", "path": "SOUL.md", "content": "{{AGENT_NAME}} is brisk"},
        {"op": "copy", "path": "IDENTITY.md", "to": "notes/identity.md"},
    )
    assert accepted.status_code == 200, accepted.text
    pinned, inherited, copied = accepted.json()["results"]
    assert inherited["version"] is None
    rows = {row["path"]: row for row in (await ada.get("/v1/agents/marco/files")).json()["files"]}
    assert rows["GUARDRAILS.md"]["source"] == "agent-override-pinned"
    assert rows["SOUL.md"]["source"] == "template"
    assert rows["notes/identity.md"]["etag"] == copied["etag"]
    assert rows["GUARDRAILS.md"]["etag"] == pinned["etag"]


async def test_secrets_are_redacted_in_what_is_put_moved_and_copied(
    ada: httpx.AsyncClient,
) -> None:
    root = "workspaces/team"
    await put(ada, root, "old.md", "the sesame-opens word")
    await put(ada, root, "kept.md", "also sesame-opens")
    await ada.put("/v1/secrets/word", json={"value": "sesame-opens"})

    response = await commit(
        ada,
        root,
        {"op": "put", "path": "new.md", "content": "say sesame-opens"},
        {"op": "move", "path": "old.md", "to": "moved.md"},
        {"op": "copy", "path": "kept.md", "to": "copied.md"},
    )

    assert response.json()["results"][0]["redacted"] == ["word"]
    contents = await texts(ada, root)
    assert contents.pop("kept.md") == "also sesame-opens"
    assert set(contents) == {"new.md", "moved.md", "copied.md"}
    assert all("sesame" not in text and "[REDACTED:word]" in text for text in contents.values())


async def test_a_file_may_take_the_place_of_a_directory_in_one_commit(
    ada: httpx.AsyncClient,
) -> None:
    root = "agents/marco"
    await put(ada, root, "notes/a/b.md")
    swapped = await commit(
        ada,
        root,
        {"op": "put", "path": "notes/a", "content": "now a file"},
        {"op": "delete", "path": "notes/a/b.md"},
    )
    assert swapped.status_code == 200, swapped.text
    clash = await commit(
        ada,
        root,
        {"op": "put", "path": "notes/c", "content": "a file"},
        {"op": "put", "path": "notes/c/d.md", "content": "below it"},
    )
    assert clash.status_code == 409
    below = await commit(ada, root, {"op": "put", "path": "notes/a/e.md", "content": "x"})
    assert (below.status_code, below.json()["details"]["path"]) == (409, "notes/a")


@pytest.mark.parametrize("root", ROOTS)
async def test_a_directory_moves_and_is_deleted_as_one_commit(
    ada: httpx.AsyncClient, root: str
) -> None:
    for name in ("a.md", "b/c.md", "b/d.md"):
        await put(ada, root, f"old/{name}", name)
    moved = await ada.post(f"/v1/{root}/move", json={"from": "old", "to": "new/place"})
    assert moved.status_code == 200, moved.text
    assert [row["path"] for row in moved.json()["results"]] == [
        "new/place/a.md",
        "new/place/b/c.md",
        "new/place/b/d.md",
    ]
    copied = await ada.post(f"/v1/{root}/copy", json={"from": "new/place/b", "to": "copy"})
    assert copied.json()["revision"] == moved.json()["revision"] + 1
    contents = await texts(ada, root)
    assert contents["new/place/a.md"] == "a.md"
    assert (contents["copy/c.md"], contents["copy/d.md"]) == ("b/c.md", "b/d.md")

    url = f"/v1/{root}/directories/new"
    assert (await ada.delete(url)).status_code == 409
    removed = await ada.delete(url, params={"recursive": "true"})
    assert removed.status_code == 200, removed.text
    assert len(removed.json()["results"]) == 3
    assert not [path for path in await texts(ada, root) if path.startswith(("old", "new"))]
    assert (await ada.delete(url, params={"recursive": "true"})).status_code == 404


async def test_a_repeated_commit_gets_the_first_response(ada: httpx.AsyncClient) -> None:
    write = {"op": "put", "path": "a.md", "content": "x", "ifNoneMatch": "*"}
    first = await commit(ada, "host/workspace", write, Idempotency_Key="k")
    again = await commit(ada, "host/workspace", write, Idempotency_Key="k")
    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()
    assert again.headers["openwop-idempotent-replay"] == "true"


class Killed(BaseException):
    """The process died between the commit and the response."""


@pytest.mark.parametrize("root", ROOTS)
async def test_a_commit_retried_after_a_crash_gets_the_lost_response(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    for path in ("notes/old.md", "dir/a.md", "dir/b.md", "gone.md"):
        await put(ada, root, path)
    writes: list[dict[str, Any]] = [
        {"op": "move", "path": "dir", "to": "moved"},
        {"op": "put", "path": "notes/a.md", "content": "a", "ifNoneMatch": "*"},
        {"op": "delete", "path": "gone.md"},
        {"op": "copy", "path": "notes/old.md", "to": "notes/copy.md"},
    ]

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await commit(ada, root, *writes, Idempotency_Key="k")

    retried = await commit(ada, root, *writes, Idempotency_Key="k")
    assert retried.status_code == 200, retried.text
    rows = [(row["index"], row["op"], row["path"]) for row in retried.json()["results"]]
    assert rows == [
        (0, "move", "moved/a.md"),
        (0, "move", "moved/b.md"),
        (1, "put", "notes/a.md"),
        (2, "delete", "gone.md"),
        (3, "copy", "notes/copy.md"),
    ]
    repeated = await commit(ada, root, *writes, Idempotency_Key="k")
    assert repeated.json() == retried.json()


async def test_an_agents_own_key_commits_only_what_its_policy_allows(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    new = {"name": "own", "kind": "agent", "agentId": "marco"}
    own = server.as_((await ada.post("/v1/keys", json=new)).json()["key"])
    root = "agents/marco"
    allowed = {"op": "put", "path": "notes/a.md", "content": "x"}
    refused = await commit(
        own,
        root,
        allowed,
        {"op": "put", "path": "SOUL.md", "content": "x"},
        {"op": "move", "path": "secret/plan.md", "to": "notes/plan.md", "ifMatch": '"v1"'},
        {"op": "put", "path": "notes/b.md", "content": "x", "ifMatch": '"v1"'},
    )
    assert refused.status_code == 403
    failed = refused.json()["details"]["failed"]
    assert [(row["index"], row["error"]) for row in failed] == [(1, "forbidden"), (2, "forbidden")]
    renamed = {"op": "put", "path": "IDENTITY.md", "content": "- **Name:** Polo\n"}
    assert (await commit(own, root, allowed, renamed)).status_code == 403
    assert (await ada.get(f"/v1/{root}/files/notes/a.md")).status_code == 404
    assert (await commit(own, root, allowed)).status_code == 200
    moved = {"op": "move", "path": "notes/a.md", "to": "memory/a.md"}
    assert (await commit(own, root, moved)).status_code == 200
    copied = {"op": "copy", "path": "memory/a.md", "to": "IDENTITY.md"}
    assert (await commit(own, root, copied)).status_code == 403
    assert (await ada.delete(f"/v1/{root}/directories/memory?recursive=true")).status_code == 200
