"""One of many writers of the same version wins, in whichever processes they run."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path as File

import httpx
from tests.support.server_process import FILES, serving

RIVALS = 64


async def race(clients: list[httpx.AsyncClient], path: str) -> None:
    first = await clients[0].put(f"{FILES}/{path}", json={"content": "first"})
    condition = {"If-Match": first.headers["etag"]}

    async def rival(number: int) -> httpx.Response:
        body = {"content": f"rival {number}"}
        client = clients[number % len(clients)]
        return await client.put(f"{FILES}/{path}", json=body, headers=condition)

    answers = await asyncio.gather(*map(rival, range(RIVALS)))

    assert Counter(a.status_code for a in answers) == {200: 1, 409: RIVALS - 1}
    losers = [a.json() for a in answers if a.status_code == 409]
    assert {a["error"] for a in losers} == {"workspace_conflict"}
    assert {a["details"]["currentVersion"] for a in losers} == {2}
    [winner] = [a.json() for a in answers if a.status_code == 200]
    assert (await clients[-1].get(f"{FILES}/{path}")).json() == winner


async def write_unconditionally(clients: list[httpx.AsyncClient], path: str) -> None:
    """Without conditions every write succeeds, and no version is given twice."""

    async def writer(number: int) -> int:
        client = clients[number % len(clients)]
        answer = await client.put(f"{FILES}/{path}", json={"content": f"writer {number}"})
        return int(answer.raise_for_status().json()["version"])

    versions = await asyncio.gather(*map(writer, range(RIVALS)))
    assert sorted(versions) == list(range(1, RIVALS + 1))


def test_one_of_64_writers_wins_on_sqlite_with_two_workers(tmp_path: File) -> None:
    async def scenario(url_clients: list[httpx.AsyncClient]) -> None:
        for turn in range(5):
            await race(url_clients, f"rivals-{turn}.md")
        await write_unconditionally(url_clients, "shared.md")

    with serving(tmp_path, workers=2) as live:

        async def main() -> None:
            async with live.http() as first, live.http() as second:
                await scenario([first, second])

        asyncio.run(main())


def test_one_of_64_writers_wins_on_postgresql_with_two_servers(
    tmp_path: File, postgres_url: str
) -> None:
    key = "0" * 64
    with (
        serving(tmp_path / "one", database_url=postgres_url, vault_key=key) as server,
        serving(tmp_path / "two", database_url=postgres_url, vault_key=key) as other_server,
    ):

        async def main() -> None:
            async with server.http() as first, other_server.http() as second:
                for turn in range(5):
                    await race([first, second], f"rivals-{turn}.md")
                await write_unconditionally([first, second], "shared.md")

        asyncio.run(main())
