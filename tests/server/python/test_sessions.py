"""Sessions in one's own process, on a file and on PostgreSQL."""

from __future__ import annotations

import json

import pytest

from carrel import Carrel
from carrel.core.errors import Conflict, NotFound, ValidationError

pytestmark = pytest.mark.anyio

ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"


async def test_what_is_said_is_kept_read_found_and_exported(desk: Carrel) -> None:
    await desk.agents.create("kate", "Kate")
    known = desk.agent("kate").sessions
    session = await known.start(ID, plugin="telegram")

    said = await session.say("user", "hello", message="m-1", plugin="telegram", sender="luis")
    await session.say("assistant", "hello Luis")

    assert (said.number, said.role, said.content, said.sender) == (1, "user", "hello", "luis")
    assert (session.entries, session.mode, session.plugin) == (2, "main", "telegram")
    assert [one.content for one in await session.read(after=1)] == ["hello Luis"]
    assert [one.content for one in await session.recent(1)] == ["hello Luis"]
    [found] = await known.search("lui")
    assert (found.session, found.entry.number) == (ID, 2)
    lines = [json.loads(line) for line in await session.lines()]
    assert [line["type"] for line in lines] == ["session", "entry", "entry"]
    assert session.started_at <= session.last_at

    await session.close()
    assert session.ended_at is not None
    with pytest.raises(Conflict):
        await session.say("user", "too late")


async def test_sessions_are_found_by_id_and_listed_by_mode(desk: Carrel) -> None:
    await desk.agents.create("kate", "Kate")
    known = desk.agent("kate").sessions
    group = await known.start(mode="group")
    main = await known.start()

    assert (group.mode, main.mode) == ("shared", "main")
    assert (await known.get(group.id.upper())).id == group.id
    assert {one.id for one in await known.list()} == {group.id, main.id}
    assert [one.id for one in await known.list(mode="shared")] == [group.id]
    with pytest.raises(ValidationError):
        await known.list(mode="group")
    with pytest.raises(NotFound):
        await known.get(ID)
    assert repr(main).startswith(f"<Session {main.id} of agt_")
