"""Skills over REST: lists, runs and discovery."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

pytestmark = pytest.mark.anyio
AGENT, INDEX = "/v1/agents/kate", "/.well-known/agent-skills/index.json"


def skill_md(name: str, description: str = "Reads it") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n# How\n"


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    for path, body in (("templates", {}), ("agents", {"templateId": "kate"})):
        created = await owner.post(f"/v1/{path}", json={"slug": "kate", "name": "Kate", **body})
        assert created.status_code == 201, created.text
    await put(owner, "/v1/defaults", "csv/SKILL.md", skill_md("csv", "For {{AGENT_NAME}}"))
    await put(owner, "/v1/templates/kate", "pdf/SKILL.md", skill_md("pdf"))
    await put(owner, "/v1/templates/kate", "pdf/run.sh", "#!/bin/sh\n")
    await put(owner, AGENT, "bad/SKILL.md", "none")
    return owner


async def put(client: httpx.AsyncClient, root: str, path: str, text: str) -> None:
    answer = await client.put(f"{root}/files/skills/{path}", json={"content": text})
    assert answer.status_code == 200, answer.text


async def get(client: httpx.AsyncClient, url: str) -> Any:
    answer = await client.get(url)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def agent_client(server: FullApp, ada: httpx.AsyncClient) -> httpx.AsyncClient:
    agent = (await get(ada, AGENT))["id"]
    body = {"name": "own", "kind": "agent", "agentId": agent}
    return server.as_((await ada.post("/v1/keys", json=body)).json()["key"])


async def test_the_skills_of_every_owner_are_listed(ada: httpx.AsyncClient) -> None:
    bad, csv, pdf = (await get(ada, f"{AGENT}/skills"))["items"]
    assert bad["problems"] == ["SKILL.md: it must start with front matter (---)"]
    assert (bad["name"], bad["valid"], bad["description"]) == ("bad", False, "")
    assert (csv["description"], csv["valid"], csv["problems"]) == ("For Kate", True, [])
    assert [(file["path"], file["source"]) for file in pdf["files"]] == [
        ("SKILL.md", "template"),
        ("run.sh", "template"),
    ]
    digests = {file["path"]: file["sha256"] for file in pdf["files"]}
    lines = "".join(f"{path}\0{digest}\n" for path, digest in digests.items())
    assert pdf["digest"] == f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    await put(ada, "/v1/workspaces/notes", "own/SKILL.md", skill_md("own"))
    for root, names in (
        ("templates/kate", ["pdf"]),
        ("defaults", ["csv"]),
        ("workspaces/notes", ["own"]),
    ):
        listed = (await get(ada, f"/v1/{root}/skills"))["items"]
        assert [skill["name"] for skill in listed] == names


async def test_a_run_tells_the_digests_of_its_skills(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate"})).json()["runId"]
    shared = {"agentId": "kate", "scope": "shared"}
    shared_run = (await ada.post("/v1/runs", json=shared)).json()["runId"]
    listed = (await get(ada, f"{AGENT}/skills"))["items"]
    expected = [
        {"name": skill["name"], "digest": skill["digest"], "files": len(skill["files"])}
        for skill in listed
    ]
    await put(ada, "/v1/templates/kate", "pdf/run.sh", "changed")
    assert (await get(ada, f"/v1/runs/{run}"))["skills"] == expected
    assert (await get(ada, f"/v1/runs/{shared_run}"))["skills"] == []
    released = {"status": "completed", "kept": False}
    assert (await ada.patch(f"/v1/runs/{run}", json=released)).json()["skills"] == []


async def test_the_index_has_what_its_digests_say(server: FullApp, ada: httpx.AsyncClient) -> None:
    own = await agent_client(server, ada)
    index = await get(own, INDEX)
    assert index["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    rows = {row["name"]: row for row in index["skills"]}
    assert {name: row["type"] for name, row in rows.items()} == {
        "csv": "skill-md",
        "pdf": "archive",
    }
    assert rows["csv"]["description"] == "For Kate"
    for row in rows.values():
        artifact = await own.get(row["url"])
        assert row["digest"] == f"sha256:{hashlib.sha256(artifact.content).hexdigest()}"
        unchanged = await own.get(row["url"], headers={"If-None-Match": artifact.headers["etag"]})
        assert unchanged.status_code == 304
    single = await own.get(rows["csv"]["url"])
    assert (single.text, single.headers["content-type"]) == (
        skill_md("csv", "For Kate"),
        "text/markdown",
    )
    archive = zipfile.ZipFile(io.BytesIO((await own.get(rows["pdf"]["url"])).content))
    assert {name: archive.read(name).decode() for name in archive.namelist()} == {
        "SKILL.md": skill_md("pdf"),
        "run.sh": "#!/bin/sh\n",
    }


async def test_the_index_of_a_named_agent_refers_to_that_agent(ada: httpx.AsyncClient) -> None:
    rows = (await get(ada, f"{INDEX}?agentId=kate"))["skills"]
    assert [row["url"] for row in rows] == [
        "/.well-known/agent-skills/csv/SKILL.md?agentId=kate",
        "/.well-known/agent-skills/pdf.zip?agentId=kate",
    ]
    for row in rows:
        assert (await ada.get(row["url"])).status_code == 200
    assert (await get(ada, INDEX))["skills"] == []
    assert (await ada.get(f"{INDEX}?agentId=none")).status_code == 404
    assert (await ada.get("/.well-known/agent-skills/bad/SKILL.md?agentId=kate")).status_code == 404
    assert (await ada.get("/.well-known/agent-skills/pdf/SKILL.md?agentId=kate")).status_code == 404


async def test_nothing_is_published_without_a_credential_or_to_another_tenant(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    nobody = server.as_(None)
    other = await server.owner("other")
    for url in (
        INDEX,
        "/.well-known/agent-skills/csv/SKILL.md",
        "/.well-known/agent-skills/pdf.zip",
    ):
        assert (await nobody.get(f"{url}?agentId=kate")).status_code == 401
        assert (await other.get(f"{url}?agentId=kate")).status_code == 404


async def test_a_large_skill_is_not_published(ada: httpx.AsyncClient) -> None:
    writes = [
        {"op": "put", "path": f"skills/csv/{number}.md", "content": "x"} for number in range(513)
    ]
    done = await ada.post("/v1/defaults/commits", json={"writes": writes})
    assert done.status_code == 200, done.text
    assert [row["name"] for row in (await get(ada, f"{INDEX}?agentId=kate"))["skills"]] == ["pdf"]
    assert "csv" in {skill["name"] for skill in (await get(ada, f"{AGENT}/skills"))["items"]}


async def test_a_write_of_an_invalid_skill_is_stored_with_a_warning(ada: httpx.AsyncClient) -> None:
    url = f"{AGENT}/files/skills/bad/SKILL.md"
    text = skill_md("bäd")
    warning = "invalid skill: name is 'b\\xe4d', but the folder is 'bad'"
    written = await ada.put(url, json={"content": text})
    assert (written.status_code, written.headers["carrel-warning"]) == (200, warning)
    sent = await ada.put(url, content=text.encode(), headers={"Content-Type": "text/markdown"})
    assert (sent.status_code, sent.headers["carrel-warning"]) == (200, warning)
    assert (await get(ada, url))["content"] == text
    valid = await ada.put(url, json={"content": skill_md("bad", "For {{AGENT_NAME}}")})
    assert "carrel-warning" not in valid.headers
    other = await ada.put(f"{AGENT}/files/skills/bad/x.md", json={"content": "none"})
    assert "carrel-warning" not in other.headers


async def test_graphql_lists_the_same_skills(ada: httpx.AsyncClient) -> None:
    text = """query ($id: ID!) { skills(place: {agentId: $id}) {
        name description valid problems digest files { path source class sha256 } } }"""
    body = {"query": text, "variables": {"id": "kate"}}
    answer = (await ada.post("/graphql", json=body)).json()
    assert "errors" not in answer, answer
    rows = answer["data"]["skills"]
    listed = (await get(ada, f"{AGENT}/skills"))["items"]
    for row, skill in zip(rows, listed, strict=True):
        names = ("name", "description", "valid", "problems", "digest")
        assert {name: row[name] for name in names} == {name: skill[name] for name in names}
        assert [(file["path"], file["sha256"]) for file in row["files"]] == [
            (f"skills/{skill['name']}/{file['path']}", file["sha256"]) for file in skill["files"]
        ]
