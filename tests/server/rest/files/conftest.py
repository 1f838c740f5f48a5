"""A server with files beside its database, its owner, and a shared workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app, settings_in

from carrel.wiring import ports as wiring_ports


@pytest.fixture
async def byte_server(tmp_path: File) -> AsyncIterator[FullApp]:
    """A server with files beside its database, as operators have it."""
    async with wiring_ports.open_ports(settings_in(tmp_path)) as store:
        yield FullApp(store.ports, create_rest_app(store.ports))


@pytest.fixture
async def byte_owner(byte_server: FullApp) -> httpx.AsyncClient:
    return await byte_server.owner()


@pytest.fixture
async def root(byte_owner: httpx.AsyncClient) -> str:
    """Files of a shared workspace, which may have 100 MiB each."""
    created = (await byte_owner.post("/accounts/me/workspaces", json={"name": "w"})).json()
    return f"/v1/workspaces/{created['workspaceId']}/files"
