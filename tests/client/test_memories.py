"""What an agent remembers and dreams, through the client and at a terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.server_fixture import Hands
from tests.e2e.servers import TOKEN, Live, command, environment

from carrel_client import AsyncClient, Client, ValidationError, NotFound


def carrel(*arguments: str, live: Live, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*command(), *arguments],
        env=environment(File("nowhere"), url=live.url, token=token),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_memories_are_told_found_listed_and_forgotten(hands: Hands, client: Client) -> None:
    memories = client.agent(hands.agent).memories
    tea = memories.remember("Bob likes green tea", tags=["drinks"], kind="user")
    assert memories.remember("Bob likes green tea") == tea
    assert memories.get(tea["id"]) == tea
    assert [one["id"] for one in memories.search("gree")] == [tea["id"]]
    assert memories.remember("heard", scope="group")["scope"] == "shared"
    assert len(memories.list()) == 2
    memories.forget(tea["id"])
    with pytest.raises(NotFound):
        memories.get(tea["id"])
    with pytest.raises(ValidationError):
        memories.remember("")


@pytest.mark.anyio
async def test_dreams_are_had_and_listed(hands: Hands, live: Live) -> None:
    async with AsyncClient(live.url, TOKEN) as client:
        dreams = client.agent(hands.agent).dreams
        dry = await dreams.sweep(dry_run=True)
        assert (dry["dryRun"], dry["candidates"]) == (True, 0)
        done: dict[str, Any] = await dreams.sweep()
        assert [one["id"] for one in await dreams.list()] == [done["id"]]
        assert (await dreams.get(done["id"]))["status"] == "done"
        with pytest.raises(NotFound):
            await dreams.approve("drm_none")
        with pytest.raises(NotFound):
            await dreams.reject("drm_none", "no")


def test_an_agent_dreams_at_a_terminal(hands: Hands, live: Live) -> None:
    dry = carrel("dream", hands.agent, "--dry-run", live=live)
    assert (dry.returncode, dry.stdout) == (0, "")
    assert dry.stderr == "0 came up, 0 would be promoted, 0 not\n"
    told = carrel("dream", hands.agent, "--json", live=live)
    assert told.returncode == 0
    found = json.loads(told.stdout)
    assert (found["ok"], found["dryRun"], found["promoted"]) == (True, False, [])
    missing = carrel("dream", "nobody", live=live)
    assert missing.returncode == 1
    assert "there is no agent nobody" in missing.stderr
