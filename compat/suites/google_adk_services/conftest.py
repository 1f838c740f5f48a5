"""Services under test; with ADK_REFERENCE, ADK's own ones in memory, which must pass as well."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator

import pytest
from google.adk.artifacts import BaseArtifactService, InMemoryArtifactService
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.sessions import BaseSessionService, InMemorySessionService

from carrel_client import AsyncClient, Client
from carrel_client.google_adk import (
    CarrelArtifacts,
    CarrelMemories,
    CarrelSessions,
)

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
IS_REFERENCE = "ADK_REFERENCE" in os.environ
CLIENT = Client(URL, TOKEN)


def new_agent() -> str:
    slug = f"agent-{secrets.token_hex(8)}"
    CLIENT.agents.create(slug, slug)
    return slug


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, TOKEN) as client:
        yield client


@pytest.fixture
def artifacts(client: AsyncClient) -> BaseArtifactService:
    if IS_REFERENCE:
        return InMemoryArtifactService()
    return CarrelArtifacts(client.workspace(CLIENT.workspaces.create("artifacts").id))


@pytest.fixture
def elsewhere(artifacts: BaseArtifactService) -> BaseArtifactService:
    """The same artifacts as another process has them."""
    return (
        CarrelArtifacts(artifacts._files) if isinstance(artifacts, CarrelArtifacts) else artifacts
    )


@pytest.fixture
def sessions(client: AsyncClient) -> BaseSessionService:
    return InMemorySessionService() if IS_REFERENCE else CarrelSessions(client, new_agent())


@pytest.fixture
def memories(client: AsyncClient) -> BaseMemoryService:
    return InMemoryMemoryService() if IS_REFERENCE else CarrelMemories(client, new_agent())
