"""Declines, merges, parts, past reviews and their roll back over REST."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio
PATH = "GUARDRAILS.md"
PINS = f"/v1/agents/marco/pins/{PATH}"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
async def ada(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    """Owner of a tenant with a template and two agents of it."""
    async with open_full_app(tmp_path) as server:
        ada = await server.owner()
        await _create_agents(ada)
        yield ada


async def _create_agents(ada: httpx.AsyncClient) -> None:
    template = await ada.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    assert template.is_success
    await put(ada, "templates/sales", "one\ntwo\nthree\n")
    for slug in ("marco", "vera"):
        body = {"slug": slug, "name": slug.title(), "templateId": "sales"}
        assert (await ada.post("/v1/agents", json=body)).is_success


async def put(ada: httpx.AsyncClient, scope: str, content: str) -> None:
    body = {"content": content, "acceptTemplateUpdate": True}
    answer = await ada.put(f"/v1/{scope}/files/{PATH}", json=body)
    assert answer.is_success, answer.text


async def send(ada: httpx.AsyncClient, url: str, status: int = 200, **body: Any) -> Any:
    answer = await ada.post(url, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def read(ada: httpx.AsyncClient, url: str) -> Any:
    answer = await ada.get(url)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def pin(ada: httpx.AsyncClient) -> Any:
    items = (await read(ada, "/v1/agents/marco/pins"))["items"]
    return next(item for item in items if item["path"] == PATH)


async def test_a_review_shows_what_is_served_and_a_decline_is_listed(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "agents/marco", "mine\n")
    await put(ada, "templates/sales", "offered\n")
    status = await pin(ada)
    texts = (status["servedContent"], status["pinnedContent"], status["latestContent"])
    assert texts == ("mine\n", "one\ntwo\nthree\n", "offered\n")
    assert (status["servedSha256"], status["declined"]) == (sha256("mine\n"), False)
    await send(ada, f"{PINS}/decline", 400, sha256=sha256("offered\n"), reason=" ")
    await send(ada, f"{PINS}/decline", 409, sha256=sha256("other\n"), reason="no")
    declined = await send(ada, f"{PINS}/decline", sha256=sha256("offered\n"), reason="later")
    assert (declined["declined"], declined["updateAvailable"]) == (True, False)
    listed = await read(ada, "/v1/reviews?templateId=sales&decision=declined")
    assert listed["total"] == 1
    [review] = listed["items"]
    assert (review["agentSlug"], review["reason"], review["sha256"]) == (
        "marco",
        "later",
        sha256("offered\n"),
    )
    assert (await read(ada, "/v1/reviews?decision=merged"))["total"] == 0
    inbox = await read(ada, "/v1/inbox")
    assert [item["agentSlug"] for item in inbox["pins"] if item["path"] == PATH] == ["vera"]


async def test_a_merge_is_proposed_and_saved(ada: httpx.AsyncClient) -> None:
    await put(ada, "agents/marco", "one\nmine\nthree\n")
    await put(ada, "templates/sales", "one\ntwo\nthree\nfour\n")
    proposal = await read(ada, f"{PINS}/merge")
    assert (proposal["content"], proposal["conflicts"]) == ("one\nmine\nthree\nfour\n", 0)
    body = {key: proposal[key] for key in ("sha256", "content", "ifMatch")}
    merged = await send(ada, f"{PINS}/merge", **body)
    assert (merged["overridden"], merged["pinnedSha256"]) == (True, proposal["sha256"])
    await send(ada, f"{PINS}/merge", 409, **body)


async def test_a_part_is_accepted_counted_and_rolled_back(ada: httpx.AsyncClient) -> None:
    await put(ada, "templates/sales", "offered\n")
    url = f"/v1/templates/sales/pins/{PATH}"
    digest = sha256("offered\n")
    await send(ada, f"{url}/accept", 400, sha256=digest, part={})
    await send(ada, f"{url}/accept", 400, sha256=digest, part={"count": 1, "share": 5})
    accepted = await send(ada, f"{url}/accept", sha256=digest, part={"share": 10})
    assert (accepted["accepted"], len(accepted["waiting"])) == (1, 1)
    versions = await read(ada, f"{url}/versions")
    assert [item["agents"] for item in versions["versions"]] == [1, 1]
    assert (versions["total"], versions["offeredSha256"]) == (2, digest)
    [review] = (await read(ada, "/v1/reviews"))["items"]
    assert (review["id"], review["part"], review["changed"]) == (accepted["reviewId"], "10 %", 1)
    undone = await send(ada, f"/v1/reviews/{review['id']}/rollback")
    assert (undone["rolledBack"], undone["failed"]) == (1, 0)
    versions = await read(ada, f"{url}/versions")
    assert [item["agents"] for item in versions["versions"]] == [2]
    await send(ada, f"/v1/reviews/{undone['reviewId']}/rollback", 409)
    await send(ada, "/v1/reviews/rev_unknown/rollback", 404)


async def test_the_removal_of_a_default_is_accepted_for_all(ada: httpx.AsyncClient) -> None:
    assert (await ada.delete("/v1/defaults/files/PLATFORM.md")).is_success
    inbox = await read(ada, "/v1/inbox")
    offered = [item for item in inbox["pins"] if item["path"] == "PLATFORM.md"]
    assert [item["latestSha256"] for item in offered] == [None, None]
    url = "/v1/defaults/pins/PLATFORM.md/accept"
    await send(ada, f"/v1/defaults/pins/{PATH}/accept", 400, sha256=None)
    accepted = await send(ada, url, sha256=None)
    assert accepted["accepted"] == 2
    assert (await ada.get("/v1/agents/marco/files/PLATFORM.md")).status_code == 404
    await send(ada, f"/v1/reviews/{accepted['reviewId']}/rollback")
    assert (await ada.get("/v1/agents/marco/files/PLATFORM.md")).status_code == 200


async def test_reviews_are_paged_with_their_total(ada: httpx.AsyncClient) -> None:
    for number in range(3):
        await put(ada, "templates/sales", f"{number}\n")
        await send(ada, f"{PINS}/accept", sha256=sha256(f"{number}\n"))
    first = await read(ada, "/v1/reviews?limit=2&agentId=marco")
    second = await read(ada, f"/v1/reviews?limit=2&agentId=marco&cursor={first['next']}")
    digests = [item["sha256"] for item in (*first["items"], *second["items"])]
    assert digests == [sha256(f"{number}\n") for number in (2, 1, 0)]
    assert (first["total"], second["total"], second["next"]) == (3, 3, None)
