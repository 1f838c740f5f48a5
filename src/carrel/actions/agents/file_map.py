"""File map of an agent: its files and peers, written into AGENTS.md."""

from __future__ import annotations

from typing import Final

from carrel.actions.files import files
from carrel.actions.files.rewrite import RewriteOutcome, rewrite
from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.file_map import (
    AGENTS_PATH,
    NEW_FILE_TITLE,
    MapEntry,
    PeerAgent,
    can_delegate_to,
    render_map,
    replace_map,
    summarize,
    without_map,
)
from carrel.core.errors import Conflict
from carrel.core.identifiers import Stack
from carrel.core.overlay.compose import Workspace
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_MANAGED_FILE_SUMMARY: Final = "written by Carrel, from the profile of the paired human"


async def regenerate(ports: Ports, actor: Actor, stack: Stack) -> RewriteOutcome:
    """Rewrite the file map inside its block of AGENTS.md.

    Raises Forbidden, Conflict if AGENTS.md is not text, WorkspaceTooLarge, Busy.
    """

    async def change(text: bytes | None) -> bytes:
        try:
            file = NEW_FILE_TITLE if text is None else text.decode()
        except UnicodeDecodeError:
            raise Conflict(f"{AGENTS_PATH} is not text") from None
        entries = await _load_map_entries(ports, stack, summarize(without_map(file).encode()))
        return replace_map(file, render_map(entries, await _load_peers(ports, stack))).encode()

    return await rewrite(ports, actor, stack, AGENTS_PATH, change, "regenerate the file map")


async def _load_map_entries(ports: Ports, stack: Stack, own_summary: str) -> list[MapEntry]:
    """List every file of the agent, and AGENTS.md even if it does not exist yet.

    AGENTS.md is part of shared prompts, so only files that a shared session may see are summarized.
    """
    workspace = await files.list_files(ports, stack)
    visible = {
        path: file
        for path, file in workspace.files.items()
        if is_visible(path, Audience.SHARED) and path != AGENTS_PATH
    }
    contents = await files.read_contents(ports, Workspace(visible), raw=True)
    summaries = {path: summarize(contents.contents.get(path, b"")) for path in visible}
    summaries |= {
        path: _MANAGED_FILE_SUMMARY
        for path, file in workspace.files.items()
        if file.file_class is FileClass.MANAGED
    }
    summaries[AGENTS_PATH] = own_summary
    return [
        MapEntry(path, summaries.get(path, "")) for path in sorted({*workspace.files, AGENTS_PATH})
    ]


async def _load_peers(ports: Ports, stack: Stack) -> list[PeerAgent]:
    """List the agents this one may delegate to, ordered by slug."""
    scope = stack[0]
    agent = (await load_agent_layers(ports, scope.tenant, scope.name)).agent
    allowed = _allowed_delegates(agent)
    if allowed is None:
        return []
    others = [
        agent_from_record(record)
        async for record in iter_records(ports, scope.tenant, RecordType.AGENT)
        if record.id != agent.id
    ]
    peers = [
        PeerAgent(other.slug, other.name)
        for other in others
        if can_delegate_to(allowed, other.slug)
    ]
    return sorted(peers, key=lambda peer: peer.slug)


def _allowed_delegates(agent: Record) -> list[object] | None:
    """Slug patterns the agent may delegate to; empty allows all, None if invalid."""
    patterns = agent_from_record(agent).config.get("allowedDelegates")
    return patterns if isinstance(patterns, list) else [] if patterns is None else None
