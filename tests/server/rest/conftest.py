"""A server over SQLite, and the owner of a tenant on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.rest_client import Desk, desk


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[Desk]:
    async with desk(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: Desk) -> httpx.AsyncClient:
    return await server.found()
