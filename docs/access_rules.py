"""Tables of access rules, computed with the predicate that decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from carrel.core.access import (
    MACHINE_PERMISSIONS,
    PERMISSIONS_BY_ROLE,
    Actor,
    CredentialKind,
    Permission,
    Role,
)
from carrel.core.agents.agent import AgentRecord, agent_change
from carrel.core.agents.private_access import (
    AUDITED_THINGS,
    READ_PERMISSIONS,
    AgentAccess,
    PrivateResource,
    agent_access,
    can_open,
    is_audited,
)
from carrel.core.store.record import Record

_PERSON, _SERVICE, _AGENT = CredentialKind


def _agent_record(*, is_shared: bool) -> Record:
    fields = AgentRecord("a", "A", human_pair_id="human", owner_id="keeper", is_shared=is_shared)
    change = agent_change("acme", "agt_a", fields)
    assert change.body is not None
    return Record(change.tenant, change.type, change.id, 1, change.body, 0, 0)


PRIVATE_AGENT: Final = _agent_record(is_shared=False)
SHARED_AGENT: Final = _agent_record(is_shared=True)


def _person(name: str, role: Role, tenant: str = "acme") -> Actor:
    permissions = PERMISSIONS_BY_ROLE[_PERSON, role]
    return Actor(tenant, name, permissions, _PERSON, role, person=name)


CALLERS: Final[Mapping[str, Actor]] = {
    "owner of the tenant": _person("ada", Role.OWNER),
    "admin of the tenant": _person("adam", Role.ADMIN),
    "owner of the agent": _person("keeper", Role.MEMBER),
    "paired human": _person("human", Role.MEMBER),
    "other member": _person("other", Role.MEMBER),
    "the agent's key": Actor("acme", "key", MACHINE_PERMISSIONS, _AGENT, agent="agt_a"),
    "another agent's key": Actor("acme", "key", MACHINE_PERMISSIONS, _AGENT, agent="agt_b"),
    "service with the permission": Actor("acme", "key", MACHINE_PERMISSIONS, _SERVICE),
    "service without it": Actor("acme", "key", frozenset({Permission.TENANT_READ}), _SERVICE),
    "other tenant": _person("eve", Role.OWNER, "globex"),
}
"""Callers of the tables, in their order."""


def access_rows(agent: Record) -> list[list[str]]:
    """One row per private thing, with its permission and one cell per caller."""
    return [
        [
            thing.value,
            f"`{READ_PERMISSIONS[thing]}`",
            *(_access_cell(actor, agent, thing) for actor in CALLERS.values()),
        ]
        for thing in PrivateResource
    ]


def _access_cell(actor: Actor, agent: Record, thing: PrivateResource) -> str:
    if can_open(actor, agent, thing):
        return "audited" if thing in AUDITED_THINGS and is_audited(actor, agent) else "yes"
    return "404" if agent_access(actor, agent) is AgentAccess.NONE else "no"


def visibility_row(agent: Record) -> list[str]:
    """Which callers with permission see the agent and its inherited live files."""
    return [
        "404" if agent_access(actor, agent) is AgentAccess.NONE else "yes"
        for actor in CALLERS.values()
    ]
