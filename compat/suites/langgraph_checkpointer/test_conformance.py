"""LangGraph's conformance tests of checkpointers, with a blocking and an awaiting client."""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.conformance.capabilities import Capability, DetectedCapabilities

from carrel_client import AsyncClient, Client
from carrel_client.langgraph import CarrelSaver

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
SPECS = "langgraph.checkpoint.conformance.spec.test_"


def capability_tests(capability: Capability) -> list[Callable[..., Any]]:
    module = importlib.import_module(SPECS + capability.value)
    tests: list[Callable[..., Any]] = getattr(module, f"ALL_{capability.value.upper()}_TESTS")
    return tests


CASES = [
    pytest.param(test, id=f"{capability.value}-{test.__name__}")
    for capability in Capability
    for test in capability_tests(capability)
]


@pytest.fixture(scope="module")
def workspace() -> str:
    with Client(URL, TOKEN) as client:
        return client.workspaces.create("checkpoints").id


def test_every_capability_is_detected(workspace: str) -> None:
    with Client(URL, TOKEN) as client:
        saver = CarrelSaver(client.workspace(workspace))
        assert not DetectedCapabilities.from_instance(saver).missing


@pytest.mark.parametrize("test", CASES)
def test_with_blocking_client(workspace: str, test: Callable[..., Any]) -> None:
    with Client(URL, TOKEN) as client:
        files = client.workspace(workspace)
        asyncio.run(test(CarrelSaver(files, prefix=f"saver/{secrets.token_hex(8)}")))


@pytest.mark.parametrize("test", CASES)
def test_with_awaiting_client(workspace: str, test: Callable[..., Any]) -> None:
    async def run() -> None:
        async with AsyncClient(URL, TOKEN) as client:
            files = client.workspace(workspace)
            await test(CarrelSaver(files, prefix=f"saver/{secrets.token_hex(8)}"))

    asyncio.run(run())
