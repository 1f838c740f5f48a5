"""The map of an agent's files and peers, which stands in its AGENTS.md."""

from __future__ import annotations

from itertools import islice
from typing import Final

from carrel.actions.files import files
from carrel.actions.files.rewrite import RewriteOutcome, rewrite
from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.agents.file_map import (
    AGENTS,
    MOST_FILES,
    TITLE,
    MapEntry,
    PeerAgent,
    allows,
    outside,
    private,
    render_map,
    replace_map,
    summarize,
)
from carrel.core.errors import Conflict
from carrel.core.identifiers import ScopeKind, Stack
from carrel.core.overlay.compose import File, Workspace
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_OF_ITS_HUMAN: Final = "written by Carrel, from the profile of the paired human"


async def regenerate(ports: Ports, actor: Actor, stack: Stack) -> RewriteOutcome:
    """Write the map anew, in its block of AGENTS.md and nowhere else.

    Raises Forbidden, Taken for an AGENTS.md that is no text, TooLarge, Busy.
    """

    async def change(text: bytes | None) -> bytes:
        try:
            file = TITLE if text is None else text.decode()
        except UnicodeDecodeError:
            raise Conflict(f"{AGENTS} is not text") from None
        places = await _places(ports, stack, summarize(outside(file).encode()))
        return replace_map(file, render_map(places, await _peers(ports, stack))).encode()

    return await rewrite(ports, actor, stack, AGENTS, change, "draw the map anew")


async def _places(ports: Ports, stack: Stack, of_itself: str) -> list[MapEntry]:
    """Every file that the agent has, AGENTS.md too, whether it is there yet or not."""
    workspace = await files.list_files(ports, stack)
    first = dict(islice(workspace.files.items(), MOST_FILES))
    contents = await files.read_contents(ports, Workspace(first), raw=True)
    told = {path: _about(file, contents.found.get(path, b"")) for path, file in first.items()}
    told[AGENTS] = of_itself
    return [MapEntry(path, told.get(path, "")) for path in sorted({*workspace.files, AGENTS})]


def _about(file: File, content: bytes) -> str:
    if file.file_class is FileClass.MANAGED:
        return _OF_ITS_HUMAN
    own = file.source.kind is ScopeKind.AGENT
    return "" if own and private(file.path) else summarize(content)


async def _peers(ports: Ports, stack: Stack) -> list[PeerAgent]:
    """The other agents to which this one may delegate, in order of slug."""
    own = stack[0]
    agent = (await load_agent_layers(ports, own.tenant, own.name)).agent
    allowed = _allowed(agent)
    found = [
        PeerAgent(other.body["slug"], other.body["name"])
        async for other in iter_records(ports, own.tenant, RecordType.AGENT)
        if allowed is not None and other.id != agent.id and allows(allowed, other.body["slug"])
    ]
    return sorted(found, key=lambda peer: peer.slug)


def _allowed(agent: Record) -> list[object] | None:
    """Patterns of slugs, none for everybody; None where nobody can tell what is meant."""
    said = (agent.body.get("config") or {}).get("allowedDelegates")
    return said if isinstance(said, list) else [] if said is None else None
