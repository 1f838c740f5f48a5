"""Entries of a session by its id, over every driver."""

from __future__ import annotations

from typing import Any

import pytest

from carrel_client.drivers import await_steps
from carrel_client.runtimes.call_ids import call_id
from carrel_client.runtimes.session_entries import append_entries, read_all
from carrel_client.sessions import Entry, NewEntry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def driver(api: Any) -> Any:
    await api.agents.create("ada")
    return getattr(api, "_resource", api)._driver


async def entries_of(driver: Any, session_id: str) -> list[Entry]:
    return await await_steps(driver, read_all(driver, "ada", session_id))


async def test_session_that_does_not_exist_has_no_entries(driver: Any) -> None:
    assert await entries_of(driver, "user/42") == []


async def test_session_starts_with_its_first_entries(api: Any, driver: Any) -> None:
    for text in ("one", "two"):
        entry = NewEntry(role="user", content=text, source_plugin="test")
        await await_steps(driver, append_entries(driver, "ada", "user/42", [entry]))
    assert [entry.content for entry in await entries_of(driver, "user/42")] == ["one", "two"]
    assert (await api.agent("ada").sessions.get("user/42")).source_plugin == "test"


async def test_all_pages_of_a_long_session_are_read(driver: Any) -> None:
    entries = [NewEntry(role="user", content=f"{number}") for number in range(1205)]
    await await_steps(driver, append_entries(driver, "ada", "long", entries))
    read = await entries_of(driver, "long")
    assert [entry.content for entry in read] == [entry.content for entry in entries]


def test_id_of_a_resumed_call_is_that_of_the_first() -> None:
    first = call_id("run_1", "call_1", "bash", {"a": 1, "b": 2})
    assert first == call_id("run_1", "call_1", "bash", {"b": 2, "a": 1})
    others = [
        call_id("run_2", "call_1", "bash", {"a": 1, "b": 2}),
        call_id("run_1", "call_2", "bash", {"a": 1, "b": 2}),
        call_id("run_1", "call_1", "bash", {"a": 1, "b": 3}),
    ]
    assert first not in others
    assert call_id("run_1", None, "bash", {}) is None
