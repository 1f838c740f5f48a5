"""Prompts by way of the client, over a live server."""

from __future__ import annotations

import pytest
from tests.client.server_fixture import Hands

from carrel_client import Client, InvalidResponse, NotFound, Prompt
from carrel_client.prompts import prompt_of


def test_an_agents_prompt_changes_and_a_runs_does_not(client: Client, hands: Hands) -> None:
    hands.put("SOUL.md", "brisk")
    hands.put("MEMORY.md", "a canary")
    agent = client.agent(hands.agent)
    run, other = agent.start_run(), agent.start_run(mode="shared")
    main, shared = agent.prompt(), agent.prompt("shared")
    assert isinstance(main, Prompt)
    assert run.prompt() == main
    assert other.prompt() == shared
    assert "# SOUL\nbrisk" in main.text
    assert "a canary" not in repr(shared)
    assert {block.kept for block in shared.blocks} == {"kept", "left out"}
    assert main.tokenizer == "o200k_base"
    hands.put("SOUL.md", "slow")
    hands.rename("Mara")
    assert agent.prompt().etag != main.etag
    assert run.prompt() == main
    with pytest.raises(NotFound):
        client.agent("nobody").prompt()


@pytest.mark.parametrize("told", [None, [], {}, {"blocks": [{}]}, {"blocks": None}])
def test_what_is_no_prompt_is_said_to_be_none(told: object) -> None:
    with pytest.raises(InvalidResponse):
        prompt_of(told)
