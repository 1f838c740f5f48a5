"""Prompts: the current one of an agent, the frozen one of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from carrel.actions.blob_contents import load_contents
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.prompt_inputs import (
    attached_scopes,
    load_prompt_inputs,
    run_prompt_inputs,
)
from carrel.actions.runs import snapshots
from carrel.actions.skills.skills import LoadedSkill, load_run_files, load_skills
from carrel.actions.timezones import local_date
from carrel.core.access import Actor
from carrel.core.files.file_kinds import LINK, file_kind
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File, Layers, revisions_etag
from carrel.core.prompt.assembly import (
    MEMORY,
    Prompt,
    PromptDocument,
    build_prompt,
    memory_workspace_ids,
    prompt_paths,
)
from carrel.core.prompt.blocks import BlockStatus, PromptBlock
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.runs import Audience, Run
from carrel.core.skills.prompt_index import PromptSkill
from carrel.core.skills.skill_definition import SKILLS_PREFIX
from carrel.core.skills.skill_folder import are_skills_visible
from carrel.ports import CorruptContent, Ports

Key = TypeVar("Key", bound=Hashable)
ETAG_LENGTH: Final = 32
"""Hex digits of an ETag."""
_LINK_PROBLEM: Final = "it is a symbolic link; links are not followed"


class BlockTokens(Struct, frozen=True, rename="camel"):
    """Outcome of one file that is a candidate for the prompt."""

    name: str
    path: str
    source: str | None
    """Layer it comes from."""
    version: int | None
    chars: int
    """Length of its block in the prompt, heading included."""
    tokens: int
    kept: BlockStatus
    reason: str


class AssembledPrompt(Struct, frozen=True, rename="camel"):
    """Prompt with its blocks and token counts."""

    text: str
    blocks: tuple[BlockTokens, ...]
    chars: int
    tokens: int
    tokenizer: str
    """Name of the tokenizer, or `estimate`."""
    etag: str
    """Equal for equal prompts of equal files."""

    is_cacheable: bool = True


class PromptRequest(Struct, frozen=True):
    """Inputs of an agent's prompt, with a cache key."""

    key: str
    """Changes with every input of the prompt."""
    agent_layers: AgentLayers
    inputs: PromptInputs


async def load_prompt_request(
    ports: Ports, actor: Actor, name: str, mode: Audience
) -> PromptRequest:
    """Load the prompt inputs of an agent by id or slug. Raises NotFound."""
    stack = await stacks.agent_stack(ports, actor, name)
    agent_layers = await load_agent_layers(ports, actor.tenant, stack[0].name)
    inputs = await load_prompt_inputs(ports, agent_layers, mode)
    today = inputs.day.isoformat() if mode is Audience.MAIN else ""
    versions = (
        agent_layers.key,
        str(agent_layers.agent.revision),
        ports.tokenizer.name,
        inputs.workspace_notes.key,
    )
    scopes = (*stack, *_memory_scopes(agent_layers, inputs))
    key = revisions_etag(
        scopes, await ports.trees.revisions(scopes), "prompt", mode, today, *versions
    )
    return PromptRequest(key, agent_layers, inputs)


def _memory_scopes(agent_layers: AgentLayers, inputs: PromptInputs) -> Stack:
    """Return the attached workspaces whose MEMORY.md is part of the prompt."""
    return (
        attached_scopes(agent_layers.agent.tenant, inputs) if memory_workspace_ids(inputs) else ()
    )


async def assemble_prompt(ports: Ports, request: PromptRequest) -> AssembledPrompt:
    """Assemble a prompt. Raises Conflict and DamagedPolicyFile."""
    resolver, paths = request.agent_layers.resolver, prompt_paths(request.inputs)
    stack, memory_scopes = (
        request.agent_layers.stack,
        _memory_scopes(request.agent_layers, request.inputs),
    )
    skill_scopes = stack if are_skills_visible(request.inputs.mode) else ()
    trees, skill_layers = await _read_trees(ports, (*stack, *memory_scopes), paths, skill_scopes)
    layers, memories = trees[: len(stack)], snapshots.workspace_memories(trees[len(stack) :])
    documents = {path: file for path in paths if (file := resolver.resolve(path, layers))}
    skill_files = resolver.compose(skill_layers).files if skill_layers else {}
    parts = _PromptFiles(documents, memories, skill_files)
    return await _count_tokens(ports, await _assemble(ports, parts, request.inputs))


async def _read_trees(
    ports: Ports, scopes: Stack, paths: Collection[Path], skill_scopes: Stack
) -> tuple[Layers, Layers]:
    """Read paths, and the skills of the first scopes, at the same revisions."""
    while True:
        trees = await ports.trees.read(scopes, paths)
        if not skill_scopes:
            return trees, ()
        skill_trees = await ports.trees.read(skill_scopes, prefix=SKILLS_PREFIX)
        revisions = [tree.revision for tree in skill_trees]
        if revisions == [tree.revision for tree in trees[: len(skill_scopes)]]:
            return trees, skill_trees


async def load_prompt_skills(
    ports: Ports, files_by_path: Mapping[Path, File]
) -> tuple[PromptSkill, ...]:
    """Load the skills among these files as parts of a prompt."""
    return tuple(map(_prompt_skill, await load_skills(ports, files_by_path)))


def _prompt_skill(skill: LoadedSkill) -> PromptSkill:
    file, is_cacheable = skill.folder.main_file, not skill.is_damaged
    if file is None:
        return PromptSkill(skill.definition)
    source = file.source_label or file.source.kind
    return PromptSkill(skill.definition, source, file.version, is_cacheable)


async def load_workspace_memories(
    ports: Ports, request: PromptRequest
) -> Mapping[str, PromptDocument]:
    """Load MEMORY.md of each attached workspace, by workspace id."""
    memory_scopes = _memory_scopes(request.agent_layers, request.inputs)
    memory_files = (
        snapshots.workspace_memories(await ports.trees.read(memory_scopes, [MEMORY]))
        if memory_scopes
        else {}
    )
    return await _load_documents(ports, memory_files)


async def load_agent_prompt(
    ports: Ports, actor: Actor, name: str, mode: Audience = Audience.MAIN
) -> AssembledPrompt:
    """Load the current prompt of an agent."""
    return await assemble_prompt(ports, await load_prompt_request(ports, actor, name, mode))


def run_content_etag(run: Run) -> str:
    """ETag of what a run reads: its layers, variables and audience. Equal for equal content."""
    layers = {layer.scope: layer.revision for layer in run.snapshot}
    variables = msgspec.json.encode(dict(run.variables), order="sorted").decode()
    start_day = local_date(run.started_at, None).isoformat()
    return revisions_etag(
        tuple(layers), tuple(layers.values()), "run", run.mode, start_day, variables
    )


async def load_run_prompt(ports: Ports, run: Run) -> AssembledPrompt:
    """Load the frozen prompt of a run. Raises NotFound if its snapshot was deleted."""
    inputs = run_prompt_inputs(run)
    documents = await snapshots.find_files(ports, run, prompt_paths(inputs))
    memories = await snapshots.load_workspace_memories(ports, run)
    parts = _PromptFiles(documents, memories, await load_run_files(ports, run))
    prompt = await _assemble(ports, parts, inputs)
    await snapshots.verify_snapshot_kept(ports, run)
    return await _count_tokens(ports, prompt)


class _PromptFiles(Struct, frozen=True):
    """Files of a prompt, without contents."""

    documents: Mapping[Path, File]
    memories: Mapping[str, File]
    skill_files: Mapping[Path, File]


async def _assemble(ports: Ports, parts: _PromptFiles, inputs: PromptInputs) -> Prompt:
    return build_prompt(
        await _load_documents(ports, parts.documents),
        inputs,
        await _load_documents(ports, parts.memories) if parts.memories else {},
        await load_prompt_skills(ports, parts.skill_files) if parts.skill_files else (),
    )


async def _load_documents(
    ports: Ports, files_by_key: Mapping[Key, File]
) -> Mapping[Key, PromptDocument]:
    """Load the contents of many files in one batch."""
    blobs = await load_contents(ports, [file.blob for file in files_by_key.values()])
    documents: dict[Key, PromptDocument] = {}
    for key, file in files_by_key.items():
        stored = blobs[file.blob.digest]
        if isinstance(stored, CorruptContent):
            documents[key] = prompt_document(file, None, damage=str(stored))
        else:
            documents[key] = prompt_document(file, stored)
    return documents


def prompt_document(file: File, stored: bytes | None, damage: str = "") -> PromptDocument:
    """Return a file as part of a prompt: rendered, or with the damage of its stored bytes."""
    content = None if stored is None else files.render_content(file, stored)
    problem = damage
    if file_kind(file.entry.type) == LINK:  # the content of a link is its target path
        content, problem = None, _LINK_PROBLEM
    source = file.source_label or file.source.kind
    return PromptDocument(content, source, file.version, problem, is_damaged=bool(damage))


async def _count_tokens(ports: Ports, prompt: Prompt) -> AssembledPrompt:
    texts = [block.text for block in prompt.blocks]
    *block_counts, total = await ports.tokenizer.count([*texts, prompt.text])
    blocks = tuple(_block_tokens(*pair) for pair in zip(prompt.blocks, block_counts, strict=True))
    etag_inputs = (prompt.text, blocks, total, ports.tokenizer.name)
    return AssembledPrompt(
        text=prompt.text,
        blocks=blocks,
        chars=len(prompt.text),
        tokens=total,
        tokenizer=ports.tokenizer.name,
        etag=f'"{hashlib.sha256(msgspec.json.encode(etag_inputs)).hexdigest()[:ETAG_LENGTH]}"',
        is_cacheable=prompt.is_cacheable,
    )


def _block_tokens(block: PromptBlock, tokens: int) -> BlockTokens:
    return BlockTokens(
        *(block.name, block.path, block.source, block.version),
        *(len(block.text), tokens, block.status, block.reason),
    )
