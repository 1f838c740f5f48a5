"""A running server for the tests of the client, and an agent for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.drivers import DRIVERS, PLATFORM_TOKEN, open_client
from tests.client.server_fixture import AgentEditor
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving

from carrel_client import Client, event_reader, requests


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("client"), platform_token=PLATFORM_TOKEN) as server:
        yield server


@pytest.fixture(scope="session")
def http(live: ServerProcess) -> Iterator[httpx.Client]:
    """The owner over plain HTTP, without the client under test."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN) as client:
        yield client


@pytest.fixture
def editor(http: httpx.Client) -> AgentEditor:
    """An agent that no other test writes to."""
    return AgentEditor.of_new_agent(http)


@pytest.fixture
def client(live: ServerProcess) -> Iterator[Client]:
    with Client(live.url, TOKEN) as running:
        yield running


@pytest.fixture(params=DRIVERS)
async def api(
    request: pytest.FixtureRequest, live: ServerProcess, tmp_path: File
) -> AsyncIterator[Any]:
    """The client over each driver, as the owner of its own tenant."""
    async with open_client(request.param, live, tmp_path / "data") as client:
        yield client


@pytest.fixture
def carrel(live: ServerProcess) -> CarrelCommand:
    """The command line as the owner."""
    return CarrelCommand(live.url)


@pytest.fixture
def directory(tmp_path: File) -> File:
    """A path at which no directory exists yet."""
    return tmp_path / "runtime/directory"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (requests, event_reader):
        monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)
