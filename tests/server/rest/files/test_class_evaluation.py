"""The file class rules are evaluated once a path, whatever a request does with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Final
from uuid import uuid4

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

from carrel.core.overlay.file_classes import find_collision, match_class

pytestmark = pytest.mark.anyio
AGENT: Final = "/v1/agents/marco"


@pytest.fixture
async def owner(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async with open_full_app(tmp_path) as here:
        client = await FullApp(here.ports, here.app).owner()
        assert (
            await client.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
        ).status_code == 201
        rules = [{"pattern": f"{uuid4().hex}/*", "class": "pinned"}]
        policy = await client.put(
            "/v1/policy", json={"classes": rules}, headers={"Carrel-Reason": "new rules"}
        )
        assert policy.status_code == 200, policy.text
        yield client


def evaluations() -> tuple[int, int]:
    return match_class.cache_info().misses, find_collision.cache_info().misses


async def test_a_write_evaluates_its_path_once(owner: httpx.AsyncClient) -> None:
    before = evaluations()
    path = f"{AGENT}/files/{uuid4().hex}.md"
    for content in ("one", "two"):
        assert (await owner.put(path, json={"content": content})).status_code == 200
        assert (await owner.get(path)).status_code == 200
    assert evaluations() == (before[0] + 1, before[1] + 1)


async def test_a_listing_evaluates_each_path_once(owner: httpx.AsyncClient) -> None:
    paths = [f"{uuid4().hex}.md" for _ in range(3)]
    for path in paths:
        body = {"content": "text"}
        assert (await owner.put(f"/v1/defaults/files/{path}", json=body)).status_code == 200
    before = evaluations()
    for query in ("", "?content=true", "?content=true&raw=true", f"?prefix={paths[0]}"):
        listing = await owner.get(f"{AGENT}/files{query}")
        assert paths[0] in listing.text
    assert evaluations() == before, "the writes evaluated the new paths"
