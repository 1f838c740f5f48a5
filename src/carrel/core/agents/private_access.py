"""Who may open what is private to an agent.

An agent that is not shared is private. `agent_access` decides. `agent_stack` in
`actions/overlay/stacks.py`, through which actions reach an agent's files, memories, sessions and
tools, requires it; `actions/agent_access.py` filters listings and audits reads. The page of access
rules in the reference is generated from `can_open`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path, ScopeKind
from carrel.core.overlay.compose import File
from carrel.core.overlay.file_classes import FileClass
from carrel.core.sessions.shared_session_visibility import is_private_path
from carrel.core.store.record import Record


class AgentAccess(StrEnum):
    """How much of an agent a caller may open."""

    NONE = "none"
    """The agent seems absent: the credential is confined elsewhere, or of another tenant."""
    INHERITED = "inherited"
    """That it exists, its record, its template and its inherited live files."""
    FULL = "full"


class PrivateResource(StrEnum):
    """What is private to an agent that is not shared."""

    PRIVATE_FILES = "USER.md, MEMORY.md, DREAMS.md, notes/**, memory/**"
    OWN_FILES = "its own and its pinned files, their history and explanation"
    PROMPT = "prompt"
    RUNS = "runs, with their files, prompt and events"
    SESSIONS = "sessions and transcripts"
    MEMORIES = "memories and recalls"
    DREAMS = "dreams"
    TOOLS = "tools, their calls and MCP"
    APPROVALS = "approvals and their inputs"
    ITEMS = "items"
    GIT = "git repository"
    EVENTS = "events of its files, runs, memories and approvals"


READ_PERMISSIONS: Final[Mapping[PrivateResource, Permission]] = {
    thing: Permission.WORKSPACE_READ for thing in PrivateResource
} | {PrivateResource.RUNS: Permission.RUNS_READ, PrivateResource.EVENTS: Permission.EVENTS_READ}
AUDITED_THINGS: Final = frozenset({PrivateResource.SESSIONS, PrivateResource.MEMORIES})
"""Things whose reading by owners and admins of the tenant is audited."""

_INHERITED_KINDS: Final = frozenset({ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})


def opens_every_agent(actor: Actor) -> bool:
    """Whether the caller may open all agents of the tenant, deleted ones included."""
    return not actor.is_confined and (actor.kind is not CredentialKind.PERSON or actor.is_admin)


def agent_access(actor: Actor, agent: Record) -> AgentAccess:
    """How much of the agent the caller may open; permissions are checked besides."""
    is_elsewhere = actor.is_confined and actor.agent != agent.id
    if actor.platform or actor.tenant != agent.tenant or is_elsewhere:
        return AgentAccess.NONE
    if actor.kind is not CredentialKind.PERSON or actor.is_admin:
        return AgentAccess.FULL
    fields = agent_from_record(agent)
    is_open = fields.is_shared or fields.is_of_person(actor.person)
    return AgentAccess.FULL if is_open else AgentAccess.INHERITED


def can_open(actor: Actor, agent: Record, thing: PrivateResource) -> bool:
    """Whether the caller may open a private thing of the agent."""
    has_permission = READ_PERMISSIONS[thing] in actor.permissions
    return has_permission and agent_access(actor, agent) is AgentAccess.FULL


def is_audited(actor: Actor, agent: Record) -> bool:
    """Whether the caller's reading of the agent's audited things is recorded.

    True for people who may read a private agent only as owner or admin of the tenant.
    """
    if actor.kind is not CredentialKind.PERSON or actor.person is None or not actor.is_admin:
        return False
    fields = agent_from_record(agent)
    return not (fields.is_shared or fields.is_of_person(actor.person))


def require_visible(actor: Actor, agent: Record, name: str | None = None) -> AgentAccess:
    """Return the access to an agent that the caller may see. Raises NotFound."""
    access = agent_access(actor, agent)
    if access is AgentAccess.NONE:
        raise NotFound(f"no such agent: {name or agent.id}")
    return access


def require_full_access(actor: Actor, agent: Record, name: str | None = None) -> None:
    """Raise NotFound or Forbidden unless the caller may open what is private to the agent."""
    if require_visible(actor, agent, name) is not AgentAccess.FULL:
        raise Forbidden(
            f"agent {name or agent.id} is private to another person", privateAgent=agent.id
        )


def is_open_file(file: File) -> bool:
    """Whether a file of a private agent is open to every member: live and inherited."""
    is_inherited = file.source.kind in _INHERITED_KINDS and file.file_class is FileClass.LIVE
    return is_inherited and not is_private_path(file.path)


def require_open_file(path: Path, file: File | None) -> File:
    """Return a file that is open to every member.

    Raises Forbidden for every other path, also if it does not exist.
    """
    if file is None or not is_open_file(file):
        raise Forbidden(
            f"{path} is private to this agent, or not one of its inherited live files",
            privateAgent=True,
        )
    return file
