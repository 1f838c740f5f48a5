"""A server over each kind of world, and the owner of a tenant on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.faces.tenancy.desk import Desk, desk
from tests.worlds import WORLDS


@pytest.fixture(params=WORLDS)
async def here(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Desk]:
    async with desk(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(here: Desk) -> httpx.AsyncClient:
    return await here.found()
