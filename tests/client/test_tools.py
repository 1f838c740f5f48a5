"""The tools of an agent, for programs: over HTTP and in process."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.client.server_fixture import Hands

import carrel
from carrel_client import Client, NotFound


def test_tools_are_described_and_called(client: Client, hands: Hands) -> None:
    tools = client.agent(hands.agent).tools
    assert "who_am_i" in [one["name"] for one in tools.describe()]
    assert {one["type"] for one in tools.describe("openai")} == {"function"}
    kept = tools.call("remember", {"content": "Ada likes tea"})
    assert not kept.is_error
    assert kept.structured["created"]
    assert tools.call("recall", {"query": "tea"}).structured["count"] == 1
    assert tools.call("recall", {"query": "tea"}, scope="shared").is_error
    with pytest.raises(NotFound):
        tools.call("fly")


@pytest.mark.anyio
async def test_a_program_calls_them_in_process(tmp_path: File) -> None:
    async with carrel.open(tmp_path / "data") as desk:
        await desk.agents.create("marco", "Marco")
        tools = desk.agent("marco").tools
        assert "who_am_i" in [one["name"] for one in await tools.describe("anthropic")]
        told = await tools.call("who_am_i")
        assert told.structured["agent_id"] == "marco"  # type: ignore[index]
        assert (await tools.call("what_do_i_know", scope="shared")).is_error
