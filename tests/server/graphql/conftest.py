"""A full server, the owner of a tenant, and an agent with a template."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.graphql_client import GraphqlTenant, create_graphql_tenant


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


@pytest.fixture
async def sample(owner: httpx.AsyncClient) -> GraphqlTenant:
    return await create_graphql_tenant(owner)
