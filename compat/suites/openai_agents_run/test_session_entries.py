"""What upstream's suite does not say about sessions: entries of others, redaction, all kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import TOKEN, URL, create_agent

from carrel_client import Client
from carrel_client.openai_agents import CarrelSession

ITEMS: list[Any] = [
    {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "42"},
    {"role": "developer", "content": "Be brief."},
]


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
def session(client: Client) -> CarrelSession:
    return CarrelSession(client, create_agent(client).slug, "chat/1")


def test_items_of_all_kinds_are_returned_as_they_were(
    client: Client, session: CarrelSession
) -> None:
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items()) == ITEMS
    entries = client.agent(session._agent).sessions.get("chat/1").recent()
    assert [entry.role for entry in entries] == ["user", "assistant", "assistant", "tool", "system"]
    assert entries[0].content == "Hi"


def test_absent_session_is_empty(session: CarrelSession) -> None:
    assert asyncio.run(session.get_items()) == []
    assert asyncio.run(session.get_items(3)) == []
    assert asyncio.run(session.pop_item()) is None
    asyncio.run(session.clear_session())
    asyncio.run(session.add_items([]))


def test_entries_of_others_are_no_items_and_are_not_removed(
    client: Client, session: CarrelSession
) -> None:
    asyncio.run(session.add_items(ITEMS))
    stored = client.agent(session._agent).sessions.get("chat/1")
    stored.append("system", "Error: a run has failed", item={"type": "error"})
    assert asyncio.run(session.get_items(2)) == ITEMS[-2:]
    assert asyncio.run(session.get_items()) == ITEMS
    assert asyncio.run(session.pop_item()) == ITEMS[-1]
    assert [entry.content for entry in stored.recent(2)] == ["42", "Error: a run has failed"]
    assert asyncio.run(session.get_items(1)) == [ITEMS[-2]]


def test_long_conversation_is_returned_whole(session: CarrelSession) -> None:
    items: list[Any] = [{"role": "user", "content": f"{number}"} for number in range(1203)]
    asyncio.run(session.add_items(items))
    assert asyncio.run(session.get_items()) == items
    assert asyncio.run(session.get_items(600)) == items[-600:]
