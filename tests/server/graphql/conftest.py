"""A full server, the owner of a tenant, and an agent with a template."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import Whole, whole
from tests.support.graphql_client import Scene, scene


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[Whole]:
    async with whole(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: Whole) -> httpx.AsyncClient:
    return await server.owner()


@pytest.fixture
async def sample(owner: httpx.AsyncClient) -> Scene:
    return await scene(owner)
