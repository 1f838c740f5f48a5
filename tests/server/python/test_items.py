"""What agents share, in a Python program."""

from __future__ import annotations

import pytest

import carrel
from carrel import Carrel

pytestmark = pytest.mark.anyio


async def test_items_are_put_got_listed_and_deleted(desk: Carrel) -> None:
    [person, *_] = await desk.people.list()
    for slug in ("cook", "main"):
        await desk.agents.create(slug, owner=person.id)
    cook, main = desk.agent("cook").items, desk.agent("main").items
    made = await cook.put("a/b", "x" * 101, if_absent=True)
    assert (made.version, made.etag, made.preview) == (1, '"v1"', "x" * 100 + "...")
    assert await main.get("a/b") == made
    [row] = await main.list("a")
    assert (row.key, row.preview, row.created_at) == ("a/b", made.preview, made.created_at)
    assert await main.list("b") == ()
    with pytest.raises(carrel.WorkspaceConflict):
        await main.put("a/b", "y", if_match='"v2"')
    assert (await main.put("a/b", "y", if_match='"v1"', reason="to see")).version == 2
    assert (await cook.get("a/b", version=1)).value == "x" * 101
    await cook.delete("a/b", if_match='"v2"')
    with pytest.raises(carrel.NotFound):
        await main.get("a/b")
