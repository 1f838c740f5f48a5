"""An edit of a template is seen by every follower's next read, whichever process it meets."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import Live, serving

FOLLOWERS = [f"agent-{number}" for number in range(8)]
SALES = "/v1/templates/sales"


@pytest.fixture(params=["sqlite", "postgres"])
def pair(request: pytest.FixtureRequest, tmp_path: File) -> Iterator[tuple[Live, Live]]:
    """Two servers on one store."""
    if request.param == "sqlite":
        with serving(tmp_path) as one, serving(tmp_path) as two:
            yield one, two
        return
    settings = {"database_url": request.getfixturevalue("postgres_url"), "vault_key": "0" * 64}
    with serving(tmp_path / "1", **settings) as one, serving(tmp_path / "2", **settings) as two:
        yield one, two


async def shown(client: httpx.AsyncClient, agent: str) -> dict[str, str]:
    found = await client.get(f"/v1/agents/{agent}/files?content=true")
    return {row["path"]: row["content"] for row in found.raise_for_status().json()["files"]}


async def put(client: httpx.AsyncClient, path: str, text: str) -> None:
    answer = await client.put(f"{SALES}/files/{path}", json={"content": text})
    answer.raise_for_status()


async def story(one: httpx.AsyncClient, two: httpx.AsyncClient) -> None:
    await one.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await put(one, "GUARDRAILS.md", "rules 0")
    for agent in FOLLOWERS:
        body = {"slug": agent, "name": agent, "templateId": "sales"}
        (await one.post("/v1/agents", json=body)).raise_for_status()
    for number in range(20):
        writer, reader = (one, two) if number % 2 else (two, one)
        # Whoever has read them lately is the one who could go on from what it knows.
        await asyncio.gather(*(shown(reader, agent) for agent in FOLLOWERS))
        await put(writer, "SOUL.md", f"soul {number} of {{{{AGENT_NAME}}}}")
        await put(writer, "GUARDRAILS.md", f"rules {number}")
        found = await asyncio.gather(*(shown(reader, agent) for agent in FOLLOWERS))
        for agent, files in zip(FOLLOWERS, found, strict=True):
            assert (files["SOUL.md"], files["GUARDRAILS.md"]) == (
                *(f"soul {number} of {agent}",),
                "rules 0",
            )
    await one.patch(f"/v1/agents/{FOLLOWERS[0]}", json={"name": "Polo"})
    assert (await shown(two, FOLLOWERS[0]))["SOUL.md"] == "soul 19 of Polo"
    sha = hashlib.sha256(b"rules 19").hexdigest()
    done = await two.post(f"{SALES}/pins/GUARDRAILS.md/accept", json={"sha256": sha})
    assert done.json()["accepted"] == len(FOLLOWERS)
    assert {(await shown(one, agent))["GUARDRAILS.md"] for agent in FOLLOWERS} == {"rules 19"}


def test_an_edit_is_seen_by_the_next_read_in_another_process(pair: tuple[Live, Live]) -> None:
    async def main() -> None:
        async with pair[0].http() as one, pair[1].http() as two:
            await story(one, two)

    asyncio.run(main())
