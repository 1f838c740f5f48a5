"""A process killed during a dream loses no memory and duplicates none."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
from pathlib import Path as File

from tests.support.server_process import command

import carrel

KILLS = 6
PROGRAM = """
import asyncio, sys, carrel

async def main(directory, life):
    async with carrel.open(directory) as client:
        if not await client.agents.list():
            await client.agents.create("marco")
        marco = client.agent("marco")
        for n in range(10_000):
            text = f"fact {life}x{n} end"
            await marco.memories.remember(text)
            print(text, flush=True)
            for query in (text, text + " again", text + " once more"):
                await marco.memories.recall(query, limit=1)
            await marco.dreams.sweep()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def run_until_killed(directory: File, number: int, after: int) -> list[str]:
    """The memories that the process had printed when it was killed."""
    run = [*command(PROGRAM), str(directory), str(number)]
    printed: list[str] = []
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout
        for line in process.stdout:
            printed.append(line.strip())
            if len(printed) > after:
                process.kill()
    assert len(printed) > after, "the process ended by itself"
    return printed


async def check_memories(directory: File, printed: list[str]) -> None:
    async with carrel.open(directory) as client:
        marco = client.agent("marco")
        remembered = await marco.memories.list()
        assert set(printed) <= {memory.content for memory in remembered}
        await marco.dreams.sweep()
        text = (await marco.get("MEMORY.md")).content
        lines = re.findall(r"(?m)^- (fact \S+ end) _\(score", text)
        assert len(lines) == len(set(lines))
        promoted = {memory.content for memory in await marco.memories.list() if memory.promoted_at}
        assert set(lines) <= promoted
        diary = (await marco.get("DREAMS.md")).content
        assert {memory for memory in promoted if f"- {memory} —" in diary} == promoted
        again = await marco.dreams.sweep()
        assert again.promoted == ()


def test_killed_dream_is_applied_completely_or_not_at_all(tmp_path: File) -> None:
    generator, printed = random.Random(7), list[str]()
    for number in range(KILLS):
        printed += run_until_killed(tmp_path / "data", number, generator.randint(2, 8))
    asyncio.run(check_memories(tmp_path / "data", printed))
