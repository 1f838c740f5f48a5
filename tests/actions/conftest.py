"""Fresh ports for every test that requests them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File

import pytest
from tests.support.empty_stores import Stores
from tests.support.services import databases
from tests.support.stores import open_ports, ports_over

from carrel.adapters.postgres import open_store
from carrel.ports import Ports


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
async def anywhere(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Ports]:
    """Ports on SQLite and on PostgreSQL."""
    if request.param == "postgres":
        async with open_store(request.getfixturevalue("postgres_url")) as store:
            yield ports_over(store, directory=tmp_path)
        return
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: File) -> Iterator[Stores]:
    """Creates empty stores on demand; a database is taken only if it is needed."""
    taken: list[str] = []

    def database() -> str:
        copies = request.getfixturevalue("postgres_copies")
        taken.append(copies.acquire())
        return databases.database_url(request.getfixturevalue("postgres_server"), taken[-1])

    yield Stores(tmp_path, database)
    for name in taken:
        request.getfixturevalue("postgres_copies").release(name)


@pytest.fixture
def file(tmp_path: File) -> File:
    """Path of a backup."""
    return tmp_path / "backup.zip"
