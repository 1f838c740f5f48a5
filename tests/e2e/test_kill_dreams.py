"""A process that is killed while its agent dreams: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
from pathlib import Path as File

from tests.support.server_process import command

import carrel

DEATHS = 6
STORY = """
import asyncio, sys, carrel

async def main(directory, life):
    async with carrel.open(directory) as desk:
        if not await desk.agents.list():
            await desk.agents.create("marco")
        marco = desk.agent("marco")
        for n in range(10_000):
            text = f"fact {life}x{n} end"
            await marco.memories.remember(text)
            print(text, flush=True)
            for query in (text, text + " again", text + " once more"):
                await marco.memories.recall(query, limit=1)
            await marco.dreams.sweep()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def live_and_die(directory: File, life: int, after: int) -> list[str]:
    """What it had said that it remembers when it was killed."""
    run = [*command(STORY), str(directory), str(life)]
    told: list[str] = []
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as one:
        assert one.stdout
        for line in one.stdout:
            told.append(line.strip())
            if len(told) > after:
                one.kill()
    assert len(told) > after, "it died by itself"
    return told


async def look(directory: File, told: list[str]) -> None:
    async with carrel.open(directory) as desk:
        marco = desk.agent("marco")
        remembered = await marco.memories.list()
        assert set(told) <= {one.content for one in remembered}
        await marco.dreams.sweep()
        text = (await marco.get("MEMORY.md")).content
        lines = re.findall(r"(?m)^- (fact \S+ end) _\(score", text)
        assert len(lines) == len(set(lines))
        promoted = {one.content for one in await marco.memories.list() if one.promoted_at}
        assert set(lines) <= promoted
        diary = (await marco.get("DREAMS.md")).content
        assert {one for one in promoted if f"- {one} —" in diary} == promoted
        again = await marco.dreams.sweep()
        assert again.promoted == ()


def test_a_dream_that_is_killed_is_as_if_it_had_not_been_or_whole(tmp_path: File) -> None:
    chance, told = random.Random(7), list[str]()
    for life in range(DEATHS):
        told += live_and_die(tmp_path / "data", life, chance.randint(2, 8))
    asyncio.run(look(tmp_path / "data", told))
