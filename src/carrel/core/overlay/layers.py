"""Stack of scopes of an agent."""

from __future__ import annotations

from carrel.core.identifiers import Scope, ScopeKind, Stack
from carrel.core.store.record import Record


def build_stack(agent: Record) -> Stack:
    """Agent files and pins over the template over the defaults."""
    tenant, pins = agent.tenant, agent.body.get("pins")
    pins_layer = (Scope(tenant, ScopeKind.PINS, pins),) if pins else ()
    return (Scope(tenant, ScopeKind.AGENT, agent.id), *pins_layer, *upstream_stack(agent))


def agent_scopes(stack: Stack) -> Stack:
    """Scopes of the agent itself: its own files and its pin set."""
    return tuple(scope for n, scope in enumerate(stack) if n == 0 or scope.kind is ScopeKind.PINS)


def upstream_stack(agent: Record) -> Stack:
    """Scopes that an agent inherits from."""
    template = agent.body.get("templateId")
    template_layer = (Scope(agent.tenant, ScopeKind.TEMPLATE, template),) if template else ()
    return (*template_layer, Scope(agent.tenant, ScopeKind.DEFAULTS, ""))
