"""Writes whose response was lost: a retry gets the response of the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


class Killed(BaseException):
    """The process died between the commit and the response."""


@pytest.mark.parametrize("root", ["host/workspace", "agents/marco"])
async def test_a_create_retried_after_a_crash_gets_the_response_of_the_first(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    body = {"slug": "marco", "name": "Marco"}
    assert (await ada.post("/v1/agents", json=body)).is_success

    async def die(*_: object) -> None:
        raise Killed

    async def create(name: str, key: str) -> httpx.Response:
        headers = {"If-None-Match": "*", "Idempotency-Key": key}
        body = {"content": "I am {{AGENT_NAME}}"}
        return await ada.put(f"/v1/{root}/files/{name}", json=body, headers=headers)

    expected = (await create("a.md", "k1")).json()
    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await create("b.md", "k2")

    for _ in range(2):
        retried = await create("b.md", "k2")
        assert retried.status_code == 200
        assert retried.headers["openwop-idempotent-replay"] == "true"
        assert retried.headers["etag"] == retried.json()["etag"]
        varying = {"path": "b.md", "updatedAt": retried.json()["updatedAt"]}
        assert retried.json() == expected | varying
