"""A fresh world of each kind, for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.worlds import WORLDS

from carrel.ports import World


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=WORLDS)
async def world(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[World]:
    async with WORLDS[request.param](tmp_path) as opened:
        yield opened
