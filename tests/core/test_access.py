"""Access: a key never carries more than its holder has, and a caller has one place to work in."""

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


def most(kind: CredentialKind, role: Role | None) -> frozenset[Permission]:
    """What the holder of a key has at most."""
    if kind is CredentialKind.SERVICE or (
        kind is CredentialKind.PERSON and role in {Role.OWNER, Role.ADMIN}
    ):
        return ALL_PERMISSIONS
    return MEMBER_PERMISSIONS if kind is CredentialKind.PERSON else MACHINE_PERMISSIONS


@given(kinds, roles, permissions)
def test_a_key_carries_what_was_asked_for_and_its_holder_has(
    kind: CredentialKind, role: Role | None, asked: frozenset[Permission]
) -> None:
    assert effective_permissions(kind, role, asked) == asked & most(kind, role)


@given(kinds, roles)
def test_a_key_that_asked_for_nothing_in_particular_never_has_more_than_its_holder(
    kind: CredentialKind, role: Role | None
) -> None:
    assert effective_permissions(kind, role, None) <= most(kind, role)


@given(kinds, roles, permissions, permissions)
def test_asking_for_less_never_gives_more(
    kind: CredentialKind,
    role: Role | None,
    asked: frozenset[Permission],
    fewer: frozenset[Permission],
) -> None:
    assert effective_permissions(kind, role, asked & fewer) <= effective_permissions(
        kind, role, asked
    )


def test_what_each_kind_of_key_carries_unless_it_is_narrowed() -> None:
    assert effective_permissions(CredentialKind.PERSON, Role.OWNER, None) == ALL_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, Role.ADMIN, None) == ALL_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, Role.MEMBER, None) == MEMBER_PERMISSIONS
    assert effective_permissions(CredentialKind.PERSON, None, None) == MEMBER_PERMISSIONS
    assert effective_permissions(CredentialKind.SERVICE, None, None) == MACHINE_PERMISSIONS
    assert effective_permissions(CredentialKind.AGENT, Role.OWNER, None) == MACHINE_PERMISSIONS


def test_an_agent_never_administers_and_a_service_only_when_it_was_asked_for() -> None:
    admin = frozenset({Permission.TENANT_ADMIN})

    assert effective_permissions(CredentialKind.AGENT, Role.OWNER, admin) == frozenset()
    assert effective_permissions(CredentialKind.SERVICE, None, admin) == admin
    assert Permission.TENANT_ADMIN not in effective_permissions(CredentialKind.SERVICE, None, None)


@given(permissions, st.sampled_from(Permission))
def test_a_caller_does_only_what_its_credential_carries(
    carried: frozenset[Permission], wanted: Permission
) -> None:
    actor = Actor("acme", "key_1", carried)
    if wanted in carried:
        actor.require(wanted)
        return
    with pytest.raises(Forbidden, match=wanted):
        actor.require(wanted)


def test_a_caller_works_where_its_credential_is_bound() -> None:
    assert Actor("acme", "k").scope == Scope("acme", ScopeKind.WORKSPACE, "default")
    assert Actor("acme", "k", workspace="w").scope == Scope("acme", ScopeKind.WORKSPACE, "w")
    assert Actor("acme", "k", agent="a", workspace="w").scope == Scope("acme", ScopeKind.AGENT, "a")
    assert not Actor("acme", "k").is_confined
    assert Actor("acme", "k", workspace="w").is_confined
    assert Actor("acme", "k", agent="a").is_confined
