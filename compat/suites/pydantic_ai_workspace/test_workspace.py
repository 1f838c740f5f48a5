"""The standard tests of workspace backends: with a sandbox, and with files alone."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from agent_fixture import TOKEN, URL
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from carrel_client import AsyncClient, Client
from carrel_client.pydantic_ai import CarrelSandbox, CarrelWorkspace


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, TOKEN) as client:
        yield client


@pytest.fixture
def agent() -> str:
    """An agent with a sandbox and no workspace, which the backend creates."""
    with Client(URL, TOKEN) as client:
        slug = f"agent-{secrets.token_hex(4)}"
        sandbox = client.sandboxes.create("suite", {"permissionMode": "bypass", "timeout": 60})
        client.agents.create(slug, config={"sandbox": sandbox.id})
        return slug


class TestCarrelSandbox(WorkspaceBackendSuite):
    @pytest.fixture
    def fresh_backend(
        self, client: AsyncClient, agent: str
    ) -> Callable[[], WorkspaceBackend] | None:
        return lambda: CarrelSandbox(client, agent)

    @pytest.fixture
    async def backend(
        self, fresh_backend: Callable[[], WorkspaceBackend]
    ) -> AsyncIterator[WorkspaceBackend]:
        yield fresh_backend()

    @pytest.fixture
    def attach_backend(
        self, client: AsyncClient, agent: str
    ) -> Callable[[WorkspaceRef], WorkspaceBackend] | None:
        return lambda ref: CarrelSandbox(client, agent, ref)

    @pytest.fixture
    def destroy_environment(
        self, client: AsyncClient
    ) -> Callable[[WorkspaceBackend], Awaitable[None]] | None:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert backend.ref is not None
            await client.workspaces.delete(backend.ref.id)

        return destroy

    @pytest.fixture
    def filesystem_honors_shell_permissions(self) -> bool:
        """Who may read a file is decided by the client's credential, not by mode bits."""
        return False


class TestCarrelWorkspace(TestCarrelSandbox):
    @pytest.fixture
    def fresh_backend(
        self, client: AsyncClient, agent: str
    ) -> Callable[[], WorkspaceBackend] | None:
        return lambda: CarrelWorkspace(client)

    @pytest.fixture
    def attach_backend(
        self, client: AsyncClient, agent: str
    ) -> Callable[[WorkspaceRef], WorkspaceBackend] | None:
        return lambda ref: CarrelWorkspace(client, ref)
