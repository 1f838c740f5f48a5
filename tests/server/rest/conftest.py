"""A server over SQLite, and the owner of a tenant on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[RestServer]:
    async with open_rest_server(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: RestServer) -> httpx.AsyncClient:
    return await server.create_tenant()
