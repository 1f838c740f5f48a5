"""Searching much text: in pieces, elsewhere, and with the same answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.tool_fixture import Workshop, workshop

from carrel.actions.sandbox import grep, workspace_files
from carrel.adapters import ripgrep
from carrel.core.identifiers import Path
from carrel.core.sandbox.grep import GrepOutput, GrepQuery
from carrel.core.search.grep_pattern import CompiledPattern
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


class Watched:
    """A search that counts what it is asked, and can be told to give up."""

    def __init__(self, *, gives_up: bool = False) -> None:
        self.asked = 0
        self.gives_up = gives_up

    async def lines(self, pattern: CompiledPattern, contents: list[bytes], most: int) -> object:
        self.asked += 1
        real = ripgrep.found()
        assert real
        return None if self.gives_up else await real.lines(pattern, contents, most)


@pytest.fixture
async def shop(ports: Ports) -> Workshop:
    made = await workshop(ports)
    for n in range(12):
        body = b"".join(b"line %d of %d\n" % (line, n) for line in range(40))
        await workspace_files.write(made.bench(), Path(f"f{n:02}"), body)
    return made


@pytest.mark.parametrize("gives_up", [False, True])
async def test_whoever_searches_the_answer_is_the_same(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, gives_up: bool
) -> None:
    monkeypatch.setattr(grep, "BATCH", 1500)
    for mode in GrepOutput:
        wanted = GrepQuery(r"1\d of [37]$", mode=mode, numbers=True)
        here = await grep.search(shop.bench(), wanted, 10**6)
        assert b"f03" in here
        monkeypatch.setattr(grep, "SMALL", 0)
        assert await grep.search(shop.bench(), wanted, 10**6) == here
        monkeypatch.setattr(grep, "LARGE", 0)
        watched = Watched(gives_up=gives_up)
        ports = replace(shop.ports, search=watched)  # type: ignore[arg-type]
        bench = replace_world(shop, ports)
        assert await grep.search(bench, wanted, 10**6) == here
        assert watched.asked > 1


def replace_world(shop: Workshop, ports: Ports) -> workspace_files.WorkspaceFiles:
    return workspace_files.WorkspaceFiles(ports, shop.owner, shop.bench().workspace)


async def test_no_more_is_looked_for_than_is_told(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep, "BATCH", 1)
    monkeypatch.setattr(grep, "LARGE", 0)
    watched = Watched()
    bench = replace_world(shop, replace(shop.ports, search=watched))  # type: ignore[arg-type]
    said = await grep.search(bench, GrepQuery("line", mode=GrepOutput.CONTENT), 100)
    assert (len(said) > 100, watched.asked) == (True, 1)
