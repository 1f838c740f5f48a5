"""The fixtures of LangGraph's own tests, with Carrel as the only checkpointer and store."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import pytest
from langgraph.cache.memory import InMemoryCache

from carrel_client import AsyncClient, Client
from carrel_client.langgraph import AsyncCarrelStore, CarrelSaver, CarrelStore

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    ids = (UUID(f"00000000-0000-4000-8000-{number:012}", version=4) for number in range(10_000))
    return mocker.patch("uuid.uuid4", side_effect=ids)


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def cache() -> InMemoryCache[Any]:
    return InMemoryCache()


@pytest.fixture(scope="session")
def workspace() -> str:
    with Client(URL, TOKEN) as client:
        return client.workspaces.create(f"graphs {secrets.token_hex(4)}").id


@pytest.fixture
def prefix() -> str:
    return f"graphs/{secrets.token_hex(8)}"


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
async def awaiting() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, TOKEN) as client:
        yield client


@pytest.fixture(params=["carrel"])
def sync_checkpointer(client: Client, workspace: str, prefix: str) -> CarrelSaver:
    return CarrelSaver(client.workspace(workspace), prefix=f"{prefix}/checkpoints")


@pytest.fixture(params=["carrel"])
async def async_checkpointer(awaiting: AsyncClient, workspace: str, prefix: str) -> CarrelSaver:
    return CarrelSaver(awaiting.workspace(workspace), prefix=f"{prefix}/checkpoints")


@pytest.fixture(params=["carrel"])
def sync_store(client: Client, workspace: str, prefix: str) -> CarrelStore:
    return CarrelStore(client.workspace(workspace), prefix=f"{prefix}/store")


@pytest.fixture(params=["carrel"])
async def async_store(awaiting: AsyncClient, workspace: str, prefix: str) -> AsyncCarrelStore:
    return AsyncCarrelStore(awaiting.workspace(workspace), prefix=f"{prefix}/store")
