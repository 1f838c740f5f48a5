"""Which runs read a version of a file, and whose runs a caller may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import open_app_over

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgres"])
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    client = await server.owner()
    assert (await client.post("/v1/templates", json={"slug": "sales", "name": "S"})).is_success
    for slug in ("kate", "marco"):
        agent = {"slug": slug, "name": slug.title(), "templateId": "sales"}
        assert (await client.post("/v1/agents", json=agent)).is_success
    return client


async def put(client: httpx.AsyncClient, scope: str, text: str, path: str = "SOUL.md") -> None:
    answer = await client.put(f"/v1/{scope}/files/{path}", json={"content": text})
    assert answer.is_success, answer.text


async def start(client: httpx.AsyncClient, agent: str) -> str:
    return str((await client.post("/v1/runs", json={"agentId": agent})).json()["runId"])


async def readers(
    client: httpx.AsyncClient, scope: str, version: int, path: str = "SOUL.md", **query: Any
) -> list[str]:
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        parameters = {"version": version, **query, **({"cursor": cursor} if cursor else {})}
        answer = await client.get(f"/v1/{scope}/files/{path}/readers", params=parameters)
        assert answer.status_code == 200, answer.text
        ids += [item["runId"] for item in answer.json()["items"]]
        cursor = answer.json()["next"]
    return ids


async def test_a_version_names_the_runs_that_read_it_from_its_layer(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "templates/sales", "one")
    first = [await start(ada, "kate"), await start(ada, "marco")]
    await put(ada, "templates/sales", "two")
    await put(ada, "agents/marco", "mine")
    second, own = await start(ada, "kate"), await start(ada, "marco")

    assert await readers(ada, "templates/sales", 1) == first[::-1]
    assert await readers(ada, "templates/sales", 1, limit=1) == first[::-1]
    assert await readers(ada, "templates/sales", 2) == [second]
    mine = (await ada.get("/v1/agents/marco/files/SOUL.md")).json()["version"]
    assert await readers(ada, "agents/marco", mine) == [own]

    await ada.patch(f"/v1/runs/{first[0]}", json={"status": "completed", "kept": False})
    assert await readers(ada, "templates/sales", 1) == [first[1]]
    missing = await ada.get("/v1/templates/sales/files/SOUL.md/readers", params={"version": 9})
    assert missing.status_code == 404


async def test_an_override_with_the_number_of_the_templates_version_is_not_that_version(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "templates/sales", "one")
    await put(ada, "agents/marco", "mine")
    inherited, _ = await start(ada, "kate"), await start(ada, "marco")
    assert await readers(ada, "templates/sales", 1) == [inherited]


async def test_a_pin_of_a_version_has_read_it_also_after_later_versions(
    ada: httpx.AsyncClient,
) -> None:
    rules = "GUARDRAILS.md"
    for number in (1, 2):
        await put(ada, "templates/sales", f"rules {number}", rules)
        pins = (await ada.get("/v1/agents/kate/pins")).json()["items"]
        [pin] = [pin for pin in pins if pin["path"] == rules]
        accepted = {"sha256": pin["latestSha256"]}
        assert (await ada.post(f"/v1/agents/kate/pins/{rules}/accept", json=accepted)).is_success
    second = await start(ada, "kate")
    await put(ada, "templates/sales", "rules 3", rules)
    again = await start(ada, "kate")
    await start(ada, "marco")

    assert await readers(ada, "templates/sales", 2, rules) == [again, second]
    assert await readers(ada, "templates/sales", 1, rules) == []
    assert await readers(ada, "templates/sales", 3, rules) == []
    body = {"slug": "vera", "name": "Vera", "templateId": "sales"}
    assert (await ada.post("/v1/agents", json=body)).is_success
    newest = await start(ada, "vera")
    assert await readers(ada, "templates/sales", 3, rules) == [newest]


async def test_runs_of_private_agents_are_not_listed_for_others(
    ada: httpx.AsyncClient, server: FullApp
) -> None:
    await put(ada, "templates/sales", "one")
    run = await start(ada, "kate")
    person = {"name": "Bob", "email": "bob@example.com", "role": "member"}
    bob = (await ada.post("/v1/people", json=person)).json()["id"]
    code = (await ada.post(f"/v1/people/{bob}/invite")).json()["code"]
    token = (await ada.post("/v1/sign-in", json={"code": code})).json()["token"]
    member = {"Authorization": f"Bearer {token}"}

    path = "/v1/templates/sales/files/SOUL.md/readers?version=1"
    assert [item["runId"] for item in (await ada.get(path)).json()["items"]] == [run]
    answer = await ada.get(path, headers=member)
    assert (answer.status_code, answer.json()["items"]) == (200, [])
