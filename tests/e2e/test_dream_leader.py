"""One process of a store runs dreams, and another takes over when it ends."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.memory import dreams
from carrel.settings import load
from carrel.wiring.background import run_dreams_as_leader
from carrel.wiring.catalog import leader_lock
from carrel.wiring.ports import open_ports

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_process_without_the_lock_runs_no_dreams(
    request: pytest.FixtureRequest, tmp_path: File, kind: str
) -> None:
    location = {"data": str(tmp_path)}
    if kind == "postgres":
        location["database_url"] = request.getfixturevalue("postgres_url")
    settings = load(location)
    async with open_ports(settings) as opened:
        ports = opened.ports
        _, owner = await create_tenant(ports)
        config = {"dreaming": {"enabled": True}}
        await agents.create(ports, owner, NewAgent("marco", "Marco", config=config))
        first, second = (leader_lock(settings, "dreams") for _ in range(2))
        assert await first.try_acquire()

        await run_dreams_as_leader(opened, second)
        assert await dreams.list_dreams(ports, owner, "marco") == ()

        await first.release()
        for _ in range(2):
            await run_dreams_as_leader(opened, second)
        [dream] = await dreams.list_dreams(ports, owner, "marco")
        assert dream.by == "carrel"
        await second.release()
