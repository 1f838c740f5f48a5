"""Hostile or broken clients: the server keeps serving the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import FILES, TOKEN, ServerProcess, serving


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data: File = tmp_path_factory.mktemp("hostile")
    with serving(data) as live:
        yield live


async def is_serving(live: ServerProcess) -> None:
    async with live.http() as client:
        response = await client.put(f"{FILES}/alive.md", json={"content": "alive"})
        assert response.status_code == 200
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
def test_invalid_body_is_refused_with_our_envelope(live: ServerProcess, name: str) -> None:
    async def scenario() -> None:
        async with live.http() as client:
            head = {"Content-Type": "application/json"}
            answer = await client.put(f"{FILES}/bad.md", content=bodies()[name], headers=head)
            assert answer.status_code in (400, 413), answer.text[:200]
            assert set(answer.json()) <= {"error", "message", "details"}
            assert (await client.get(f"{FILES}/bad.md")).status_code == 404
        await is_serving(live)

    asyncio.run(scenario())


PATHS = [
    *("..", "a/../b", "a//b", "/a", "a/", ".", "a/./b", "%2e%2e/a", "a%00b", "a%0ab", "a%5cb"),
    *("%ff", "%c0%ae%c0%ae", "a" * 300, "ä.md", "%E2%80%AE.md", ".hidden", "-a", "a b"),
]


@pytest.mark.parametrize("path", PATHS)
def test_path_that_could_escape_is_refused(live: ServerProcess, path: str) -> None:
    async def scenario() -> None:
        reader, writer = await asyncio.open_connection(*_address(live))
        body = b'{"content":"x"}'
        head = f"PUT {FILES}/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        assert answer.split(b" ")[1] in (b"400", b"404"), answer[:300]

    asyncio.run(scenario())


def _address(live: ServerProcess) -> tuple[str, int]:
    url = httpx.URL(live.url)
    return url.host, url.port or 80


def test_slow_and_silent_clients_block_no_others(live: ServerProcess) -> None:
    async def scenario() -> None:
        lines = (
            b"",
            b"PUT " + FILES.encode() + b"/slow.md HTTP/1.1\r\nHost: x\r\nContent-Le",
            f"PUT {FILES}/slow.md HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f'Content-Length: 1000\r\n\r\n{{"con'.encode(),
        )
        writers = []
        for number in range(300):
            reader, writer = await asyncio.open_connection(*_address(live))
            writer.write(lines[number % len(lines)])
            writers.append((reader, writer))
        await is_serving(live)
        for _, writer in writers:
            writer.close()
        await is_serving(live)

    asyncio.run(scenario())


def test_server_responds_with_a_thousand_open_streams(live: ServerProcess) -> None:
    count = 1000

    async def scenario() -> None:
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
            response = await client.put(f"{FILES}/event.md", json={"content": "to all streams"})
            assert response.status_code == 200
        for reader, writer in streams:
            event = await asyncio.wait_for(reader.readuntil(b"workspace.updated"), 30)
            assert b"event:" in event
            writer.close()
        await is_serving(live)

    asyncio.run(scenario())


GET = f"GET {FILES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
PUT = GET.replace(b"GET", b"PUT").replace(b" HTTP", b"/endless.md HTTP")
ENDLESS = {
    "a header": GET + b"X-Endless: ",
    "an address": b"GET /v1/",
    "trailers": PUT + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Endless: ",
    "an extension of a chunk": PUT + b"Transfer-Encoding: chunked\r\n\r\n2;",
}


async def answered(
    live: ServerProcess, begin: bytes, more: bytes = b"", megabytes: int = 0
) -> bytes:
    """The response, however much of the request the server accepted."""
    reader, writer = await asyncio.open_connection(*_address(live))
    with suppress(ConnectionError):
        writer.write(begin)
        for _ in range(megabytes * 16):
            writer.write(more * 2**16)
            await writer.drain()
    answer = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(30):
            while piece := await reader.read(2**16):
                answer += piece
    writer.close()
    return answer


@pytest.mark.parametrize("part", ENDLESS)
def test_endless_request_is_cut_off(live: ServerProcess, part: str) -> None:
    async def scenario() -> None:
        before = _memory(live)
        await answered(live, ENDLESS[part], b"x", 64)
        assert _memory(live) - before < 32 * 2**20
        await is_serving(live)

    asyncio.run(scenario())


def _memory(live: ServerProcess) -> int:
    """Peak memory of the server."""
    with open(f"/proc/{live.process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def test_too_large_headers_are_431_and_large_ones_are_accepted(live: ServerProcess) -> None:
    async def scenario() -> None:
        refused = await answered(live, GET + b"X-Large: " + b"x" * 300_000)
        assert refused.startswith(b"HTTP/1.1 431 ")
        envelope = json.loads(refused.partition(b"\r\n\r\n")[2])
        assert (envelope["error"], envelope["details"]) == (
            "headers_too_large",
            {"maxBytes": 2**18},
        )
        large = b"X-Large: " + b"x" * 100_000 + b"\r\nConnection: close\r\n\r\n"
        assert (await answered(live, GET + large)).startswith(b"HTTP/1.1 200 ")

    asyncio.run(scenario())


def test_large_body_is_no_large_header(live: ServerProcess) -> None:
    async def scenario() -> None:
        async with live.http() as client:
            body = {"content": "x" * 1_000_000}
            assert (await client.put(f"{FILES}/large.md", json=body)).status_code == 200

            async def pieces() -> AsyncIterator[bytes]:
                for piece in (b'{"content":"', *[b"y" * 1_000] * 900, b'"}'):
                    yield piece

            head = {"Content-Type": "application/json"}
            sent = await client.put(f"{FILES}/pieces.md", content=pieces(), headers=head)
            assert sent.status_code == 200

    asyncio.run(scenario())


NO_HTTP = [
    b"nonsense\r\n\r\n",
    b"GET /?q=\xc3\xa4 HTTP/1.1\r\n\r\n",
    b"GET http://x:99999999/ HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n",
]


@pytest.mark.parametrize("raw", NO_HTTP)
def test_invalid_http_is_refused_with_our_envelope(live: ServerProcess, raw: bytes) -> None:
    async def scenario() -> None:
        answer = await answered(live, raw)
        *_, refused = answer.partition(b"HTTP/1.1 400 ")
        envelope = json.loads(refused.partition(b"\r\n\r\n")[2])
        assert (envelope["error"], set(envelope)) == ("validation_error", {"error", "message"})

    asyncio.run(scenario())
