"""A live server for all tests of the client, and agents on it, each a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File

import httpx
import pytest
from tests.client.commands import Carrel
from tests.client.scene import Hands
from tests.e2e.servers import PLAIN, TOKEN, Live, serving

from carrel_client import Client, requests


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(tmp_path_factory.mktemp("client")) as server:
        yield server


@pytest.fixture(scope="session")
def http(live: Live) -> Iterator[httpx.Client]:
    """The owner, without our client."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN) as client:
        yield client


@pytest.fixture
def hands(http: httpx.Client) -> Hands:
    """An agent of its own, that nobody else writes to."""
    return Hands.of_new_agent(http)


@pytest.fixture
def client(live: Live) -> Iterator[Client]:
    with Client(live.url, TOKEN) as opened:
        yield opened


@pytest.fixture
def carrel(live: Live) -> Carrel:
    """The command line, as the owner."""
    return Carrel(live.url)


@pytest.fixture
def desk(tmp_path: File) -> File:
    """A directory that is not there yet."""
    return tmp_path / "runtime/desk"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_WAIT", 0.001)
