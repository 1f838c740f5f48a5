"""A fresh store of each kind for every test that requests one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.contract_stores import LARGE_BLOB_STORES, STORES, Ports, StoreLocation


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: File) -> StoreLocation:
    """Where a store keeps its data; a database is created only if it is needed."""
    return StoreLocation(tmp_path, lambda: str(request.getfixturevalue("postgres_url")))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of a module with `stores` on these, and others on one of each database."""
    if "ports" in metafunc.fixturenames:
        metafunc.parametrize("ports", getattr(metafunc.module, "stores", STORES), indirect=True)


@pytest.fixture
async def ports(request: pytest.FixtureRequest, place: StoreLocation) -> AsyncIterator[Ports]:
    async with LARGE_BLOB_STORES[request.param](place) as opened:
        yield opened
