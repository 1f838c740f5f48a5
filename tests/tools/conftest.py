"""Fixtures of the tool tests."""

from __future__ import annotations

import pytest
from tests.actions.conftest import anywhere
from tests.support.shell_commands import standing_in
from tests.support.tenant_fixture import Room, furnished

from carrel.ports import Ports

__all__ = ["anywhere"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tenant(anywhere: Ports, monkeypatch: pytest.MonkeyPatch) -> Room:
    """An agent whose commands need approval, on every store."""
    return await furnished(anywhere, standing_in(monkeypatch))
