"""Whether an agent's prompt is as it should be."""

from __future__ import annotations

from carrel.actions.files import files
from carrel.actions.prompt import prompts
from carrel.core.access import Actor
from carrel.core.prompt.assembly import wanted
from carrel.core.prompt.lint import LintFinding, LintInput, flaws
from carrel.core.runs import Audience
from carrel.ports import Ports


async def of_agent(ports: Ports, actor: Actor, name: str) -> tuple[LintFinding, ...]:
    """What is wrong with its main prompt and its files, in order. Raises Missing."""
    asked = await prompts.load_prompt_request(ports, actor, name, Audience.MAIN)
    workspace = await files.list_files(ports, asked.lineage.stack, render_context=asked.lineage.eye)
    contents = await files.read_contents(ports, workspace, raw=True)
    stored = {
        path: LintInput(content, workspace.files[path].variables)
        for path, content in contents.found.items()
    }
    served = {
        path: prompts.prompt_document(file, contents.found.get(path), contents.failed.get(path, ""))
        for path in wanted(asked.wish)
        if (file := workspace.files.get(path))
    }
    return flaws(served, stored, asked.wish, await prompts.memories_of(ports, asked))
