"""Access: a key never has more permissions than its holder, and one scope."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.access import (
    ALL_PERMISSIONS,
    MACHINE_PERMISSIONS,
    MEMBER_PERMISSIONS,
    Actor,
    CredentialKind,
    Permission,
    Role,
    effective_permissions,
)
from carrel.core.errors import Forbidden
from carrel.core.identifiers import Scope, ScopeKind

kinds = st.sampled_from(CredentialKind)
roles = st.none() | st.sampled_from(Role)
permissions = st.frozensets(st.sampled_from(Permission))


def holder_permissions(kind: CredentialKind, role: Role | None) -> frozenset[Permission]:
    """All permissions that the holder of a key can have."""
    if kind is CredentialKind.SERVICE or (
        kind is CredentialKind.PERSON and role in {Role.OWNER, Role.ADMIN}
    ):
        return ALL_PERMISSIONS
    return MEMBER_PERMISSIONS if kind is CredentialKind.PERSON else MACHINE_PERMISSIONS


@given(kinds, roles, permissions)
def test_a_key_has_the_requested_permissions_that_its_holder_has(
    kind: CredentialKind, role: Role | None, requested: frozenset[Permission]
) -> None:
    assert effective_permissions(kind, role, requested) == requested & holder_permissions(
        kind, role
    )


@given(kinds, roles)
def test_a_key_without_requested_permissions_never_exceeds_its_holder(
    kind: CredentialKind, role: Role | None
) -> None:
    assert effective_permissions(kind, role, None) <= holder_permissions(kind, role)


@given(kinds, roles, permissions, permissions)
def test_requesting_fewer_permissions_never_grants_more(
    kind: CredentialKind,
    role: Role | None,
    requested: frozenset[Permission],
    fewer: frozenset[Permission],
) -> None:
    assert effective_permissions(kind, role, requested & fewer) <= effective_permissions(
        kind, role, requested
    )


def test_the_default_permissions_of_each_kind_of_key() -> None:
    assert effective_permissions(CredentialKind.PERSON, Role.OWNER, None) == ALL_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, Role.ADMIN, None) == ALL_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, Role.MEMBER, None) == MEMBER_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, None, None) == MEMBER_PERMISSIONS
    assert effective_permissions(CredentialKind.SERVICE, None, None) == MACHINE_PERMISSIONS
    assert effective_permissions(CredentialKind.AGENT, Role.OWNER, None) == MACHINE_PERMISSIONS


def test_an_agent_never_administers_and_a_service_only_on_request() -> None:
    admin = frozenset({Permission.TENANT_ADMIN})

    assert effective_permissions(CredentialKind.AGENT, Role.OWNER, admin) == frozenset()
    assert effective_permissions(CredentialKind.SERVICE, None, admin) == admin
    assert Permission.TENANT_ADMIN not in effective_permissions(CredentialKind.SERVICE, None, None)


@given(permissions, st.sampled_from(Permission))
def test_require_passes_only_for_permissions_of_the_credential(
    permissions_of_key: frozenset[Permission], permission: Permission
) -> None:
    actor = Actor("acme", "key_1", permissions_of_key)
    if permission in permissions_of_key:
        actor.require(permission)
        return
    with pytest.raises(Forbidden, match=permission):
        actor.require(permission)


def test_a_callers_scope_is_that_of_its_credential() -> None:
    assert Actor("acme", "k").scope == Scope("acme", ScopeKind.WORKSPACE, "default")
    assert Actor("acme", "k", workspace="w").scope == Scope("acme", ScopeKind.WORKSPACE, "w")
    assert Actor("acme", "k", agent="a", workspace="w").scope == Scope("acme", ScopeKind.AGENT, "a")
    assert not Actor("acme", "k").is_confined
    assert Actor("acme", "k", workspace="w").is_confined
    assert Actor("acme", "k", agent="a").is_confined
