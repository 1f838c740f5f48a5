"""Prompts: of an agent as it is now, and of a run for ever as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from carrel.actions.blob_contents import contents_of
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.prompt_inputs import attached, current_prompt_inputs, run_prompt_inputs
from carrel.actions.runs import runs
from carrel.core.access import Actor
from carrel.core.files.file_kinds import LINK, form_of
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File, revisions_etag
from carrel.core.prompt.assembly import (
    MEMORY,
    BlockFate,
    Prompt,
    PromptBlock,
    PromptDocument,
    assembled,
    remembering,
    wanted,
)
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.runs import Audience, Run
from carrel.ports import CorruptContent, Ports

Key = TypeVar("Key", bound=Hashable)
ETAG: Final = 32
"""Digits of an etag."""
_FOLLOWED_NOWHERE: Final = "it is a link, and links are not followed"


class BlockTokens(Struct, frozen=True, rename="camel"):
    """What became of one file that could have stood in the prompt."""

    name: str
    path: str
    source: str | None
    """The layer that it comes from."""
    version: int | None
    chars: int
    """Of what stands in the prompt for it, with its heading."""
    tokens: int
    kept: BlockFate
    reason: str


class AssembledPrompt(Struct, frozen=True, rename="camel"):
    """A prompt, and what it is made of."""

    text: str
    blocks: tuple[BlockTokens, ...]
    chars: int
    tokens: int
    tokenizer: str
    """What counted the tokens, or `estimate`."""
    etag: str
    """The same for the same prompt of the same files."""

    lasts: bool = True


class PromptRequest(Struct, frozen=True):
    """An agent's prompt before it is made."""

    key: str
    """Changes with anything that could change the prompt."""
    lineage: AgentLayers
    wish: PromptInputs


async def load_prompt_request(
    ports: Ports, actor: Actor, name: str, mode: Audience
) -> PromptRequest:
    """By id or slug. Raises Missing."""
    stack = await stacks.agent_stack(ports, actor, name)
    agent_layers = await load_agent_layers(ports, actor.tenant, stack[0].name)
    inputs = await current_prompt_inputs(ports, agent_layers, mode)
    today = inputs.day.isoformat() if mode is Audience.MAIN else ""
    seen = (
        agent_layers.key,
        str(agent_layers.agent.revision),
        ports.tokens.name,
        inputs.harness.key,
    )
    read = (*stack, *_remembering(agent_layers, inputs))
    key = revisions_etag(read, await ports.trees.revisions(read), "prompt", mode, today, *seen)
    return PromptRequest(key, agent_layers, inputs)


def _remembering(agent_layers: AgentLayers, inputs: PromptInputs) -> Stack:
    """The attached workspaces of which the prompt shows a file."""
    return attached(agent_layers.agent.tenant, inputs) if remembering(inputs) else ()


async def assemble_prompt(ports: Ports, asked: PromptRequest) -> AssembledPrompt:
    """Raises Taken where a policy file does not fit or cannot be had."""
    render_context, paths = asked.lineage.eye, wanted(asked.wish)
    stack, beside = asked.lineage.stack, _remembering(asked.lineage, asked.wish)
    trees = await ports.trees.read((*stack, *beside), paths)
    layers, memories = trees[: len(stack)], runs.memories_in(trees[len(stack) :])
    found = {path: file for path in paths if (file := render_context.resolve(path, layers))}
    return await _counted(ports, await _assembled(ports, found, memories, asked.wish))


async def memories_of(ports: Ports, asked: PromptRequest) -> Mapping[str, PromptDocument]:
    """What those who share the attached workspaces remember, by their ids."""
    beside = _remembering(asked.lineage, asked.wish)
    found = runs.memories_in(await ports.trees.read(beside, [MEMORY])) if beside else {}
    return await _documents(ports, found)


async def of_agent(
    ports: Ports, actor: Actor, name: str, mode: Audience = Audience.MAIN
) -> AssembledPrompt:
    """The prompt that an agent would be given now."""
    return await assemble_prompt(ports, await load_prompt_request(ports, actor, name, mode))


async def of_run(ports: Ports, run: Run) -> AssembledPrompt:
    """The prompt of a run, whatever has changed since. Raises Missing where that was let go."""
    inputs = run_prompt_inputs(run)
    found = await runs.find_files(ports, run, wanted(inputs))
    prompt = await _assembled(ports, found, await runs.memories(ports, run), inputs)
    await runs.verify_snapshot_kept(ports, run)
    return await _counted(ports, prompt)


async def _assembled(
    ports: Ports, found: Mapping[Path, File], memories: Mapping[str, File], inputs: PromptInputs
) -> Prompt:
    own = await _documents(ports, found)
    return assembled(own, inputs, await _documents(ports, memories) if memories else {})


async def _documents(ports: Ports, found: Mapping[Key, File]) -> Mapping[Key, PromptDocument]:
    """In one batch."""
    blobs = await contents_of(ports, [file.blob for file in found.values()])
    documents: dict[Key, PromptDocument] = {}
    for key, file in found.items():
        stored = blobs[file.blob.digest]
        if isinstance(stored, CorruptContent):
            documents[key] = prompt_document(file, None, str(stored))
        else:
            documents[key] = prompt_document(file, stored)
    return documents


def prompt_document(file: File, stored: bytes | None, problem: str = "") -> PromptDocument:
    """A file as a prompt takes it: as it is served, or why it cannot be."""
    content = None if stored is None else files.render_content(file, stored)
    if form_of(file.entry.type) == LINK:  # where it points to is not what it says
        content, problem = None, _FOLLOWED_NOWHERE
    return PromptDocument(content, file.origin or file.source.kind, file.head.version, problem)


async def _counted(ports: Ports, prompt: Prompt) -> AssembledPrompt:
    texts = [block.text for block in prompt.blocks]
    *each, all_of_it = await ports.tokens.count([*texts, prompt.text])
    blocks = tuple(_row(*pair) for pair in zip(prompt.blocks, each, strict=True))
    facts = (prompt.text, blocks, all_of_it, ports.tokens.name)
    return AssembledPrompt(
        text=prompt.text,
        blocks=blocks,
        chars=len(prompt.text),
        tokens=all_of_it,
        tokenizer=ports.tokens.name,
        etag=f'"{hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:ETAG]}"',
        lasts=prompt.lasts,
    )


def _row(block: PromptBlock, tokens: int) -> BlockTokens:
    return BlockTokens(
        *(block.name, block.path, block.source, block.version),
        *(len(block.text), tokens, block.kept, block.reason),
    )
