"""A large file is sent in parts, so that no response holds it whole."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app, settings_in

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.identifiers import Path
from carrel.ports.blobs import PART_BYTES
from carrel.wiring import ports as wiring_ports

pytestmark = pytest.mark.anyio
TEXT = 'a"\\\n\u2028é🌱' * (3 * PART_BYTES // 14)
"""Escapes and characters of several bytes at the ends of parts."""


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    """A server with files beside its database, as operators have it."""
    async with wiring_ports.open_ports(settings_in(tmp_path)) as store:
        yield FullApp(store.ports, create_rest_app(store.ports))


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


@pytest.fixture
async def url(ada: httpx.AsyncClient) -> str:
    """A large file of a shared workspace."""
    created = (await ada.post("/accounts/me/workspaces", json={"name": "w"})).json()
    url = f"/v1/workspaces/{created['workspaceId']}/files/large.txt"
    assert (await ada.put(url, json={"content": TEXT})).status_code == 200
    return url


async def test_parts_add_up_to_the_file(ada: httpx.AsyncClient, url: str) -> None:
    current = await ada.get(url)
    assert current.json()["content"] == TEXT
    assert current.headers["content-length"] == str(len(current.content))
    assert (await ada.get(url, params={"version": 1})).json() == current.json()
    tag = {"If-None-Match": current.headers["etag"]}
    assert (await ada.get(url, headers=tag)).status_code == 304
    assert (await ada.head(url)).headers["content-length"] == current.headers["content-length"]


@pytest.mark.parametrize("version", ["", "?version=1"])
async def test_a_response_has_parts_of_limited_size(
    server: FullApp, ada: httpx.AsyncClient, url: str, version: str
) -> None:
    sizes: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def record(message: Any) -> None:
            sizes.append(len(message.get("body", b"")))
            await send(message)

        await server.app(scope, receive, record)

    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, headers=ada.headers) as client:
        assert (await client.get(f"http://carrel{url}{version}")).status_code == 200
    assert sum(sizes) > len(TEXT.encode())
    assert max(sizes) < 2 * PART_BYTES


async def test_a_damaged_file_is_refused_before_its_response_begins(
    tmp_path: File, ada: httpx.AsyncClient, url: str
) -> None:
    [stored] = filter(_is_large, tmp_path.rglob("*"))  # noqa: ASYNC240 - a few files
    stored.write_bytes(stored.read_bytes()[:-1] + b"x")
    refused = await ada.get(url)
    assert (refused.status_code, refused.json()["error"]) == (500, "corrupt")
    assert "large.txt" in refused.text


@pytest.mark.parametrize("tail", [b"\xff", b"\xff\xff", b"\xc3"])
async def test_bytes_that_are_no_text_are_sent_as_base64_in_parts(
    server: FullApp, ada: httpx.AsyncClient, url: str, tail: bytes
) -> None:
    actor = await authenticate(server.ports, ada.headers["Authorization"].partition(" ")[2])
    stack = await stacks.workspace_stack(server.ports, actor, url.split("/")[3])
    await files.put(server.ports, stack, Path("large.txt"), TEXT.encode() + tail, actor)
    got = await ada.get(url)
    assert got.headers["content-length"] == str(len(got.content))
    assert got.json()["encoding"] == "base64"
    assert base64.b64decode(got.json()["content"]) == TEXT.encode() + tail


def _is_large(file: File) -> bool:
    return file.is_file() and "blobs" in file.parts and file.stat().st_size > PART_BYTES
