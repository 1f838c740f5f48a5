"""Which scopes lie over one another for an agent."""

from __future__ import annotations

from carrel.core.identifiers import Scope, ScopeKind, Stack
from carrel.core.store.record import Record


def stack_of(agent: Record) -> Stack:
    """An agent's own files and its pins over its template's files over the defaults."""
    tenant, pins = agent.tenant, agent.body.get("pins")
    reviewed = (Scope(tenant, ScopeKind.PINS, pins),) if pins else ()
    return (Scope(tenant, ScopeKind.AGENT, agent.id), *reviewed, *upstream_of(agent))


def own_scopes(stack: Stack) -> Stack:
    """The scopes that say what an agent itself has: its own, and the pins that it was made with."""
    return tuple(scope for n, scope in enumerate(stack) if n == 0 or scope.kind is ScopeKind.PINS)


def upstream_of(agent: Record) -> Stack:
    """The layers that an agent inherits from."""
    template = agent.body.get("templateId")
    followed = (Scope(agent.tenant, ScopeKind.TEMPLATE, template),) if template else ()
    return (*followed, Scope(agent.tenant, ScopeKind.DEFAULTS, ""))
