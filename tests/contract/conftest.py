"""A fresh store of each kind for every test that requests one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.contract_stores import STORES, Ports, StoreLocation


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: File) -> StoreLocation:
    """Where a store keeps its data; a database is created only if it is needed."""
    return StoreLocation(tmp_path, lambda: str(request.getfixturevalue("postgres_url")))


@pytest.fixture(params=STORES)
async def ports(request: pytest.FixtureRequest, place: StoreLocation) -> AsyncIterator[Ports]:
    async with STORES[request.param](place) as opened:
        yield opened
