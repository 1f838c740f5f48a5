"""Clients that mean no good, or know no better: the server goes on serving everybody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path as File

import httpx
import pytest
from tests.e2e.servers import FILES, TOKEN, Live, serving


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    data: File = tmp_path_factory.mktemp("hostile")
    with serving(data) as live:
        yield live


async def is_serving(live: Live) -> None:
    async with live.http() as client:
        made = await client.put(f"{FILES}/alive.md", json={"content": "alive"})
        assert made.status_code == 200
        assert (await client.get(f"{FILES}/alive.md")).json()["content"] == "alive"


def bodies() -> dict[str, bytes]:
    return {
        "ten megabytes": json.dumps({"content": "x" * 10_000_000}).encode(),
        "broken UTF-8": b'{"content": "\xff\xfe\x80"}',
        "a lone surrogate": b'{"content": "\\ud800"}',
        "deep JSON": b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        "no JSON": b"\x00\x01\x02",
        "nothing": b"",
        "an array": b"[]",
        "a huge number": b'{"content": ' + b"9" * 100_000 + b"}",
        "an unknown field": b'{"content": "x", "tenant": "other"}',
        "a null": b'{"content": null}',
    }


@pytest.mark.parametrize("name", bodies())
def test_a_bad_body_is_refused_in_our_own_words(live: Live, name: str) -> None:
    async def story() -> None:
        async with live.http() as client:
            head = {"Content-Type": "application/json"}
            answer = await client.put(f"{FILES}/bad.md", content=bodies()[name], headers=head)
            assert answer.status_code in (400, 413), answer.text[:200]
            assert set(answer.json()) <= {"error", "message", "details"}
            assert (await client.get(f"{FILES}/bad.md")).status_code == 404
        await is_serving(live)

    asyncio.run(story())


PATHS = [
    *("..", "a/../b", "a//b", "/a", "a/", ".", "a/./b", "%2e%2e/a", "a%00b", "a%0ab", "a%5cb"),
    *("%ff", "%c0%ae%c0%ae", "a" * 300, "ä.md", "%E2%80%AE.md", ".hidden", "-a", "a b"),
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_could_escape_is_refused(live: Live, path: str) -> None:
    async def story() -> None:
        reader, writer = await asyncio.open_connection(*_address(live))
        body = b'{"content":"x"}'
        head = f"PUT {FILES}/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        assert answer.split(b" ")[1] in (b"400", b"404"), answer[:300]

    asyncio.run(story())


def _address(live: Live) -> tuple[str, int]:
    url = httpx.URL(live.url)
    return url.host, url.port or 80


def test_slow_and_silent_clients_hold_nobody_up(live: Live) -> None:
    async def story() -> None:
        lines = (
            b"",
            b"PUT " + FILES.encode() + b"/slow.md HTTP/1.1\r\nHost: x\r\nContent-Le",
            f"PUT {FILES}/slow.md HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f'Content-Length: 1000\r\n\r\n{{"con'.encode(),
        )
        held = []
        for number in range(300):
            reader, writer = await asyncio.open_connection(*_address(live))
            writer.write(lines[number % len(lines)])
            held.append((reader, writer))
        await is_serving(live)
        for _, writer in held:
            writer.close()
        await is_serving(live)

    asyncio.run(story())


def test_a_thousand_open_streams_leave_the_server_serving(live: Live) -> None:
    count = 1000

    async def story() -> None:
        head = "GET /v1/host/workspace/events HTTP/1.1\r\nHost: x\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\n\r\n"
        streams = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection(*_address(live))
            writer.write(head.encode())
            streams.append((reader, writer))
        for reader, _ in streams:
            assert b"200" in await asyncio.wait_for(reader.readline(), 30)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        async with live.http() as client:
            made = await client.put(f"{FILES}/told.md", json={"content": "to everybody"})
            assert made.status_code == 200
        for reader, writer in streams:
            told = await asyncio.wait_for(reader.readuntil(b"workspace.updated"), 30)
            assert b"event:" in told
            writer.close()
        await is_serving(live)

    asyncio.run(story())
