"""Providers under test; with FRAMEWORK_REFERENCE, those of the framework, which must pass too."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agent_framework import (
    AgentFileStore,
    FileHistoryProvider,
    FileSystemAgentFileStore,
    HistoryProvider,
)

from carrel_client import AsyncClient, Client
from carrel_client.agent_framework import CarrelFileStore, CarrelHistoryProvider

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
IS_REFERENCE = "FRAMEWORK_REFERENCE" in os.environ
CLIENT = Client(URL, TOKEN)


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, TOKEN) as client:
        yield client


@pytest.fixture
def files(client: AsyncClient, tmp_path: Path) -> AgentFileStore:
    if IS_REFERENCE:
        return FileSystemAgentFileStore(tmp_path)
    workspace = CLIENT.workspaces.create("files").id
    return CarrelFileStore(client.workspace(workspace), directory="shared/files")


@pytest.fixture
def history(client: AsyncClient, tmp_path: Path) -> HistoryProvider:
    if IS_REFERENCE:
        return FileHistoryProvider(tmp_path)
    slug = f"agent-{secrets.token_hex(8)}"
    CLIENT.agents.create(slug, slug)
    return CarrelHistoryProvider(client, slug)
