"""Callers, roles and permissions of credentials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.file_classes import matches_any
from carrel.core.store.record import KeyReference


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


ADMIN_ROLES: Final = frozenset({Role.OWNER, Role.ADMIN})


class CredentialKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"
    AGENT = "agent"


class Permission(StrEnum):
    """Permissions that a key may be restricted to. Write does not imply read."""

    WORKSPACE_READ = "workspace:read"
    WORKSPACE_WRITE = "workspace:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    EVENTS_READ = "events:read"
    TENANT_READ = "tenant:read"
    TENANT_ADMIN = "tenant:admin"


ALL_PERMISSIONS: Final = frozenset(Permission)
MEMBER_PERMISSIONS: Final = ALL_PERMISSIONS - {Permission.TENANT_ADMIN}
MACHINE_PERMISSIONS: Final = MEMBER_PERMISSIONS - {Permission.TENANT_READ}

PERMISSIONS_BY_ROLE: Final = {
    (CredentialKind.PERSON, Role.OWNER): ALL_PERMISSIONS,
    (CredentialKind.PERSON, Role.ADMIN): ALL_PERMISSIONS,
    (CredentialKind.PERSON, Role.MEMBER): MEMBER_PERMISSIONS,
}
DEFAULT_WORKSPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Actor:
    """An authenticated caller."""

    tenant: str
    name: str
    """Author in history and events: the person's id, else the key's id.

    Contains no personal data.
    """
    permissions: frozenset[Permission] = field(default=ALL_PERMISSIONS)
    kind: CredentialKind = CredentialKind.PERSON
    role: Role | None = None
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    key: str = ""
    """Id of the key that authenticated the caller; empty if none did."""
    key_name: str = ""
    platform: bool = False
    """May create tenants and do nothing else."""
    scope: Scope = field(init=False, compare=False)
    """Default scope of requests that name none."""

    def __post_init__(self) -> None:
        kind, name = ScopeKind.WORKSPACE, self.workspace or DEFAULT_WORKSPACE
        if self.agent is not None:
            kind, name = ScopeKind.AGENT, self.agent
        object.__setattr__(self, "scope", Scope(self.tenant, kind, name))

    def require(self, permission: Permission) -> None:
        if permission not in self.permissions:
            raise Forbidden(f"this credential lacks the permission {permission}", scope=permission)

    @property
    def key_reference(self) -> KeyReference | None:
        """Key through which the caller acts, for the audit."""
        return KeyReference(self.key, self.key_name) if self.key else None

    @property
    def is_admin(self) -> bool:
        """Whether the caller is owner or admin, or has the permission of one."""
        return self.role in ADMIN_ROLES or Permission.TENANT_ADMIN in self.permissions

    @property
    def is_person_admin(self) -> bool:
        """Whether the caller is a person who is owner or admin."""
        return self.kind is CredentialKind.PERSON and self.role in ADMIN_ROLES

    def require_person_admin(self, action: str) -> None:
        """Raise Forbidden unless the caller is a person who is owner or admin."""
        if not self.is_person_admin:
            raise Forbidden(f"only a person who is owner or admin may {action}")

    def require_owner(self, action: str) -> None:
        """Raise Forbidden unless the caller is a person who is owner."""
        if self.kind is not CredentialKind.PERSON or self.role is not Role.OWNER:
            raise Forbidden(f"only a person who is owner may {action}")

    @property
    def is_confined(self) -> bool:
        """Whether the credential is confined to one agent or workspace."""
        return self.agent is not None or self.workspace is not None


def author_and_key(author: Actor | str) -> tuple[str, KeyReference | None]:
    """Return the name and the key that a commit records for its author."""
    return (author, None) if isinstance(author, str) else (author.name, author.key_reference)


PLATFORM: Final = Actor("", "platform", frozenset(), platform=True)
"""Caller that creates tenants."""


def require_write_access(actor: Actor, scope: Scope, path: Path, writable: Iterable[str]) -> None:
    """Check that the caller may change a file of an agent. Raises Forbidden.

    Owners, admins and services may write every path; agents only paths that match `writable`.
    """
    if scope.kind is not ScopeKind.AGENT:
        return
    if actor.kind is CredentialKind.AGENT and not matches_any(path, writable):
        raise Forbidden(
            f"agents may not write {path}: the policy's agentWritable does not match it"
        )
    if actor.kind is CredentialKind.PERSON and not actor.is_admin:
        raise Forbidden("only an owner or admin may change an agent's files")


def effective_permissions(
    kind: CredentialKind, role: Role | None, requested: frozenset[Permission] | None
) -> frozenset[Permission]:
    """Permissions of a key: those requested, limited to what its holder may have."""
    maximum = (
        ALL_PERMISSIONS
        if kind is CredentialKind.SERVICE
        else PERMISSIONS_BY_ROLE.get((kind, role or Role.MEMBER), MACHINE_PERMISSIONS)
    )
    default = MACHINE_PERMISSIONS if kind is CredentialKind.SERVICE else maximum
    return default if requested is None else requested & maximum
