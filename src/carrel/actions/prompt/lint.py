"""Lints an agent's prompt."""

from __future__ import annotations

from carrel.actions.files import files
from carrel.actions.prompt import prompts
from carrel.core.access import Actor
from carrel.core.prompt.assembly import prompt_paths
from carrel.core.prompt.lint import LintFinding, LintInput, lint_prompt
from carrel.core.runs import Audience
from carrel.ports import Ports


async def lint_agent(ports: Ports, actor: Actor, name: str) -> tuple[LintFinding, ...]:
    """Return problems of an agent's main prompt and files, in order. Raises NotFound."""
    request = await prompts.load_prompt_request(ports, actor, name, Audience.MAIN)
    workspace = await files.list_files(
        ports, request.agent_layers.stack, resolver=request.agent_layers.resolver
    )
    contents = await files.read_contents(ports, workspace, raw=True)
    stored = {
        path: LintInput(content, workspace.files[path].variables)
        for path, content in contents.contents.items()
    }
    served = {
        path: prompts.prompt_document(
            file, contents.contents.get(path), contents.failed.get(path, "")
        )
        for path in prompt_paths(request.inputs)
        if (file := workspace.files.get(path))
    }
    memories = await prompts.load_workspace_memories(ports, request)
    skills = await prompts.load_prompt_skills(ports, workspace.files)
    return lint_prompt(served, stored, request.inputs, memories, skills)
