"""Bytes in are bytes out, for every content, size of parts, type and range."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.full_app import open_configured_app, settings_in

from carrel.core.redaction.redactor import Redactor
from carrel.ports.blobs import PART_BYTES

SECRETS = {"fish": "swordfish-4711-swordfish"}
WANT = {"Accept": "application/octet-stream"}
PIECES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=50).map(str.encode),
    st.sampled_from([b"swordfish-4711-swordfish", b"swordfish-4711-", b"\n", b"{{AGENT_NAME}}"]),
)
FILLERS = st.tuples(st.binary(min_size=1, max_size=9), st.sampled_from([0, 1, 70_000, 300_000]))
CONTENTS = st.lists(st.one_of(PIECES, FILLERS.map(lambda pair: pair[0] * pair[1])), max_size=8).map(
    b"".join
)
TYPES = st.sampled_from(["image/png", "text/plain; charset=utf-8", "application/octet-stream"])


@dataclass
class Wire:
    runner: asyncio.Runner
    client: httpx.AsyncClient
    url: str

    def ask(self, method: str, **options: object) -> httpx.Response:
        return self.runner.run(self.client.request(method, self.url, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    async def start(stack: AsyncExitStack) -> tuple[httpx.AsyncClient, str]:
        directory = tmp_path_factory.mktemp("bytes")
        app = await stack.enter_async_context(open_configured_app(settings_in(directory)))
        client = await stack.enter_async_context(await app.owner())
        for id, value in SECRETS.items():
            await client.put(f"/v1/secrets/{id}", json={"value": value})
        created = (await client.post("/accounts/me/workspaces", json={"name": "w"})).json()
        return client, f"/v1/workspaces/{created['workspaceId']}/files/a.bin"

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        client, url = runner.run(start(stack))
        yield Wire(runner, client, url)
        runner.run(stack.aclose())


async def parts_of(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@settings(max_examples=60)
@given(content=CONTENTS, part_bytes=st.sampled_from([999, 65_536, 3 * PART_BYTES]), type=TYPES)
def test_bytes_in_are_bytes_out(wire: Wire, content: bytes, part_bytes: int, type: str) -> None:
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    headers = {"Content-Type": type, "Repr-Digest": f"sha-256=:{digest}:"}
    put = wire.ask("PUT", content=parts_of(content, part_bytes), headers=headers)
    assert put.status_code == 200, put.text

    stored = Redactor(SECRETS).redact(content).content
    got = wire.ask("GET", headers=WANT)
    assert got.content == stored
    assert got.headers["content-type"] == type
    assert put.json()["sha256"] == hashlib.sha256(stored).hexdigest()
    body = wire.ask("GET").json()
    is_base64 = body.get("encoding") == "base64"
    assert (base64.b64decode(body["content"]) if is_base64 else body["content"].encode()) == stored

    if is_base64:
        again = {"content": body["content"], "encoding": "base64"}
        assert wire.ask("PUT", json=again).json()["sha256"] == put.json()["sha256"]


@settings(max_examples=60)
@given(
    content=st.sampled_from([b"", b"x" * 1000, b"0123456789" * 200_000]),
    first=st.integers(0, 2_100_000),
    length=st.integers(1, 2_100_000),
)
def test_a_range_is_that_part(wire: Wire, content: bytes, first: int, length: int) -> None:
    wire.ask("PUT", content=content, headers={"Content-Type": "text/plain"})
    part = wire.ask("GET", headers={**WANT, "Range": f"bytes={first}-{first + length - 1}"})
    if first >= len(content):
        assert part.status_code == 416
    else:
        assert (part.status_code, part.content) == (206, content[first : first + length])
