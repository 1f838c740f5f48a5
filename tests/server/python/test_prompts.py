"""Prompts in one's own process."""

from __future__ import annotations

import pytest

import carrel
from carrel.server.python import Carrel

pytestmark = pytest.mark.anyio


async def test_an_agents_prompt_changes_and_a_runs_does_not(desk: Carrel) -> None:
    await desk.agents.create("marco", "Marco")
    marco = desk.agent("marco")
    await marco.put("MEMORY.md", "a canary")
    run = await marco.start_run("work")
    before = await marco.prompt()
    assert (await run.prompt()) == before
    assert "name=Marco" in before.text
    assert "a canary" in before.text
    assert "a canary" not in repr(await marco.prompt("shared"))
    await desk.agents.change("marco", name="Mara")
    assert "name=Mara" in (await marco.prompt()).text
    assert (await (await desk.run(run.id)).prompt()) == before
    assert (await (await run.replay()).prompt()) == before
    with pytest.raises(carrel.ValidationError):
        await marco.prompt("group")
