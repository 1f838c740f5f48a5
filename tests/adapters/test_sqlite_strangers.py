"""What one process remembers of a store holds only until another has written to it."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.contract.scenes import AGENT, DEFAULTS, RULES, TEMPLATE, say

from carrel.adapters.sqlite import open_store

pytestmark = pytest.mark.anyio
STACK = (AGENT, TEMPLATE, DEFAULTS)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_listing_that_is_known_gives_way_to_what_another_writes(tmp_path: File) -> None:
    file = tmp_path / "carrel.db"
    async with open_store(file) as mine, open_store(file) as theirs:
        await say(mine, "first", TEMPLATE, RULES)
        for number in range(2, 5):
            for scope in STACK:
                known = await mine.trees.read(STACK)
                assert await mine.trees.read(STACK) == known
                before = await mine.trees.revisions(STACK)
                await say(theirs, f"{scope.kind} {number}", scope, RULES)
                assert await mine.trees.revisions(STACK) != before
                [tree] = [one for one in await mine.trees.read(STACK) if one.scope == scope]
                [seen] = await theirs.trees.read((scope,))
                assert tree == seen
