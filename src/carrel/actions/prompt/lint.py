"""Whether an agent's prompt is as it should be."""

from __future__ import annotations

from carrel.actions.files import files
from carrel.actions.prompt import prompts
from carrel.core.access import Actor
from carrel.core.prompt.assembly import wanted
from carrel.core.prompt.lint import Flaw, Stored, flaws
from carrel.core.runs import Mode
from carrel.ports import World


async def of_agent(world: World, actor: Actor, name: str) -> tuple[Flaw, ...]:
    """What is wrong with its main prompt and its files, in order. Raises Missing."""
    asked = await prompts.asked(world, actor, name, Mode.MAIN)
    workspace = await files.listing(world, asked.lineage.stack, eye=asked.lineage.eye)
    contents = await files.contents(world, workspace, raw=True)
    stored = {
        path: Stored(content, workspace.files[path].variables)
        for path, content in contents.found.items()
    }
    served = {
        path: prompts.document(file, contents.found.get(path), contents.failed.get(path, ""))
        for path in wanted(asked.wish)
        if (file := workspace.files.get(path))
    }
    return flaws(served, stored, asked.wish, await prompts.memories_of(world, asked))
