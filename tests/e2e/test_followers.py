"""An edit of a template is visible in every follower's next read, in every process."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import ServerProcess, serving

FOLLOWERS = [f"agent-{number}" for number in range(8)]
SALES = "/v1/templates/sales"


@pytest.fixture(params=["sqlite", "postgres"])
def pair(
    request: pytest.FixtureRequest, tmp_path: File
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers on one store."""
    if request.param == "sqlite":
        with serving(tmp_path) as first, serving(tmp_path) as second:
            yield first, second
        return
    settings = {"database_url": request.getfixturevalue("postgres_url"), "vault_key": "0" * 64}
    with (
        serving(tmp_path / "1", **settings) as first,
        serving(tmp_path / "2", **settings) as second,
    ):
        yield first, second


async def read_files(client: httpx.AsyncClient, agent: str) -> dict[str, str]:
    response = await client.get(f"/v1/agents/{agent}/files?content=true")
    return {row["path"]: row["content"] for row in response.raise_for_status().json()["files"]}


async def put(client: httpx.AsyncClient, path: str, text: str) -> None:
    answer = await client.put(f"{SALES}/files/{path}", json={"content": text})
    answer.raise_for_status()


async def check_edits(first: httpx.AsyncClient, second: httpx.AsyncClient) -> None:
    await first.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await put(first, "GUARDRAILS.md", "rules 0")
    for agent in FOLLOWERS:
        body = {"slug": agent, "name": agent, "templateId": "sales"}
        (await first.post("/v1/agents", json=body)).raise_for_status()
    for number in range(20):
        writer, reader = (first, second) if number % 2 else (second, first)
        # A reader that has just read the files may have cached them.
        await asyncio.gather(*(read_files(reader, agent) for agent in FOLLOWERS))
        await put(writer, "SOUL.md", f"soul {number} of {{{{AGENT_NAME}}}}")
        await put(writer, "GUARDRAILS.md", f"rules {number}")
        listings = await asyncio.gather(*(read_files(reader, agent) for agent in FOLLOWERS))
        for agent, files in zip(FOLLOWERS, listings, strict=True):
            assert (files["SOUL.md"], files["GUARDRAILS.md"]) == (
                *(f"soul {number} of {agent}",),
                "rules 0",
            )
    await first.patch(f"/v1/agents/{FOLLOWERS[0]}", json={"name": "Polo"})
    assert (await read_files(second, FOLLOWERS[0]))["SOUL.md"] == "soul 19 of Polo"
    sha = hashlib.sha256(b"rules 19").hexdigest()
    done = await second.post(f"{SALES}/pins/GUARDRAILS.md/accept", json={"sha256": sha})
    assert done.json()["accepted"] == len(FOLLOWERS)
    assert {(await read_files(first, agent))["GUARDRAILS.md"] for agent in FOLLOWERS} == {
        "rules 19"
    }


def test_edit_is_visible_to_the_next_read_in_another_process(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    async def main() -> None:
        async with pair[0].http() as first, pair[1].http() as second:
            await check_edits(first, second)

    asyncio.run(main())
