"""Checks of every write to a file: permission, path, media type, run and an agent's name."""

from __future__ import annotations

import re
from typing import Final

from carrel.actions.agent_access import find_open_agents
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.access import Actor, CredentialKind, require_write_access
from carrel.core.agents.identity_name import IDENTITY_PATH, parse_names
from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.placeholders import render_bytes
from carrel.core.runs import Run
from carrel.core.store.commit import QuotaExceeded
from carrel.core.store.record import RecordType
from carrel.ports import Ports

_MEDIA_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(;[ -~]{0,96})?"
)
_CLASSIFIED_KINDS: Final = frozenset({ScopeKind.AGENT, ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})
"""Scopes whose files have a class."""


def require_writable(actor: Actor, scope: Scope, path: Path, rules: TenantRules) -> None:
    """Check that the caller may write a path. Raises Forbidden."""
    if scope.kind is not ScopeKind.AGENT:
        return
    require_write_access(actor, scope, path, rules.policy.agent_writable)
    pinned = rules.policy.classes.class_of(path) is FileClass.PINNED
    if actor.kind is CredentialKind.AGENT and pinned:
        raise Forbidden(f"{path} is pinned: an agent cannot override its own guardrails")


def check_path(scope: Scope, path: Path, rules: TenantRules) -> None:
    """Check a path that gets a content. Raises ValidationError."""
    check_path_class(scope, path, rules)
    check_path_secret(path, rules)


def check_path_class(scope: Scope, path: Path, rules: TenantRules) -> None:
    """Raises ValidationError for a path that collides with a pinned or managed one."""
    if scope.kind in _CLASSIFIED_KINDS:
        rules.policy.classes.check_path(path)


def check_path_secret(path: Path, rules: TenantRules) -> None:
    """Raises ValidationError for a path with a secret."""
    rules.require_no_secret("the path", path.text)


def check_media_type(type: str | None) -> None:
    """Raises ValidationError."""
    if type is not None and not _MEDIA_TYPE.fullmatch(type):
        raise ValidationError("contentType is not a media type")


def check_type_secret(type: str | None, rules: TenantRules) -> None:
    """Raises ValidationError for a media type with a secret."""
    rules.require_no_secret("contentType", type)


async def check_run(ports: Ports, actor: Actor, scope: Scope, id: str | None) -> None:
    """Check that a named run belongs to this workspace and has not ended.

    A shared workspace accepts runs of every agent that the caller may open. Raises NotFound and
    Conflict.
    """
    if id is None:
        return
    [run] = await ports.runs.get(actor.tenant, [id])
    if run is None or not (
        run.scope == scope or (scope.is_shared_workspace and await _is_open(ports, actor, run))
    ):
        raise NotFound(f"no such run: {id}")
    if not run.accepts_writes:
        raise Conflict(f"the run is {run.status}", status=run.status)


async def _is_open(ports: Ports, actor: Actor, run: Run) -> bool:
    """Whether this is a run of an agent whose private things the caller may open."""
    agent = run.scope.name
    is_of_agent = run.scope.kind is ScopeKind.AGENT
    return is_of_agent and agent in await find_open_agents(ports, actor, [agent])


async def check_name_unchanged(
    ports: Ports,
    actor: Actor,
    resolver: AgentFileResolver,
    before: Layers,
    after: Layers | bytes,
) -> None:
    """Raise Forbidden if an agent changes its own name in IDENTITY.md."""
    if actor.kind is not CredentialKind.AGENT:
        return
    rendered = after if isinstance(after, bytes) else await _render_identity(ports, resolver, after)
    if parse_names(await _render_identity(ports, resolver, before)) != parse_names(rendered):
        raise Forbidden("an agent may change its IDENTITY.md, but not its name")


async def _render_identity(ports: Ports, resolver: AgentFileResolver, layers: Layers) -> bytes:
    file = resolver.resolve(IDENTITY_PATH, layers)
    if file is None:
        return b""
    content = (await ports.blobs.get([file.blob]))[file.blob.digest]
    return content if file.variables is None else render_bytes(content, file.variables)


WRITE_ACTION: Final = "write files"
"""Action of a write to files, for the audit."""


def audit_subjects(scope: Scope, path: Path, rules: TenantRules) -> tuple[str, ...]:
    """Audit subjects of a write: files of many agents, and overrides of pinned files."""
    match scope.kind:
        case ScopeKind.TEMPLATE:
            owner = f"{RecordType.TEMPLATE}/{scope.name}"
        case ScopeKind.DEFAULTS:
            owner = f"{RecordType.DEFAULTS}/{scope.tenant}"
        case ScopeKind.AGENT if rules.policy.classes.class_of(path) is FileClass.PINNED:
            owner = f"{RecordType.AGENT}/{scope.name}"
        case _:
            return ()
    return owner, f"file/{owner}/{path.text}"


def quota_error(exceeded: QuotaExceeded) -> WorkspaceTooLarge:
    if exceeded.files > exceeded.quota.max_files:
        limit = exceeded.quota.max_files
        return WorkspaceTooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    limit = exceeded.quota.max_bytes or 0
    return WorkspaceTooLarge(f"the workspace may have {limit} bytes", maxBytes=limit)
