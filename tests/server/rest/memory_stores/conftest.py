"""A memory store on a server over each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.server.memory_store_client import MemoryStoreClient, create_store
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


@pytest.fixture
async def store(owner: httpx.AsyncClient) -> MemoryStoreClient:
    return await create_store(owner)
