"""What tests of tools may ask for beside what all may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.actions.conftest import anywhere
from tests.tools.commands import standing_in
from tests.tools.room import Room, furnished
from tests.tools.workshop import Workshop, workshop
from tests.worlds import WORLDS

from carrel.ports import World

__all__ = ["anywhere"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def room(anywhere: World, monkeypatch: pytest.MonkeyPatch) -> Room:
    """An agent that may run commands where somebody says yes, on every store."""
    return await furnished(anywhere, standing_in(monkeypatch))


@pytest.fixture(params=WORLDS)
async def world(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[World]:
    async with WORLDS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
async def shop(world: World) -> Workshop:
    """An agent that has hands, in a world of each kind."""
    return await workshop(world)
