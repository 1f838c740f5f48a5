"""Who is asking, and what a credential lets them do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.file_classes import matches_any


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class CredentialKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"
    AGENT = "agent"


class Permission(StrEnum):
    """What a key may be narrowed to. Writing does not imply reading."""

    WORKSPACE_READ = "workspace:read"
    WORKSPACE_WRITE = "workspace:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    EVENTS_READ = "events:read"
    TENANT_READ = "tenant:read"
    TENANT_ADMIN = "tenant:admin"


ALL: Final = frozenset(Permission)
DAILY: Final = ALL - {Permission.TENANT_ADMIN}
MACHINE: Final = DAILY - {Permission.TENANT_READ}

GRANTED: Final = {
    (CredentialKind.PERSON, Role.OWNER): ALL,
    (CredentialKind.PERSON, Role.ADMIN): ALL,
    (CredentialKind.PERSON, Role.MEMBER): DAILY,
}
DEFAULT_WORKSPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Actor:
    """One caller, as its credential shows it."""

    tenant: str
    name: str
    """Opaque and free of personal facts: what history and events say did it. The id of a person,
    whichever key they came with, else that of the key."""
    permissions: frozenset[Permission] = field(default=ALL)
    kind: CredentialKind = CredentialKind.PERSON
    role: Role | None = None
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    key: str = ""
    """The id of the key it came with; empty where it was none."""
    platform: bool = False
    """May create tenants, and nothing else."""
    scope: Scope = field(init=False, compare=False)
    """The scope it works in when it names none."""

    def __post_init__(self) -> None:
        kind, name = ScopeKind.WORKSPACE, self.workspace or DEFAULT_WORKSPACE
        if self.agent is not None:
            kind, name = ScopeKind.AGENT, self.agent
        object.__setattr__(self, "scope", Scope(self.tenant, kind, name))

    def require(self, permission: Permission) -> None:
        if permission not in self.permissions:
            raise Forbidden(f"this credential does not carry {permission}", scope=permission)

    @property
    def is_confined(self) -> bool:
        """Whether it is confined to one agent or workspace."""
        return self.agent is not None or self.workspace is not None


PLATFORM: Final = Actor("", "platform", frozenset(), platform=True)
"""The caller that creates tenants."""


def may_write(actor: Actor, scope: Scope, path: Path, writable: Iterable[str]) -> None:
    """Whether a caller may change an agent's file. Raises Forbidden.

    Owners and admins may, and services; an agent only what its policy lets agents write.
    """
    if scope.kind is not ScopeKind.AGENT:
        return
    if actor.kind is CredentialKind.AGENT and not matches_any(path, writable):
        raise Forbidden(f"an agent may not write {path}: its policy names what agents write")
    leads = actor.role in {Role.OWNER, Role.ADMIN} or Permission.TENANT_ADMIN in actor.permissions
    if actor.kind is CredentialKind.PERSON and not leads:
        raise Forbidden("only an owner or admin may change an agent's files")


def granted(
    kind: CredentialKind, role: Role | None, asked: frozenset[Permission] | None
) -> frozenset[Permission]:
    """What a key carries: what was asked for, never more than its holder has."""
    most = (
        ALL if kind is CredentialKind.SERVICE else GRANTED.get((kind, role or Role.MEMBER), MACHINE)
    )
    usual = MACHINE if kind is CredentialKind.SERVICE else most
    return usual if asked is None else asked & most
