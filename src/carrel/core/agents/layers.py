"""Stack of scopes of an agent."""

from __future__ import annotations

from carrel.core.agents.agent import agent_from_record
from carrel.core.identifiers import Scope, ScopeKind, Stack
from carrel.core.store.record import Record


def build_stack(agent: Record) -> Stack:
    """Agent files and pins over the template over the defaults."""
    tenant, fields = agent.tenant, agent_from_record(agent)
    pins_layer = (Scope(tenant, ScopeKind.PINS, fields.pins),) if fields.pins else ()
    return (
        Scope(tenant, ScopeKind.AGENT, agent.id),
        *pins_layer,
        *_upstream(tenant, fields.template_id),
    )


def agent_scopes(stack: Stack) -> Stack:
    """Scopes of the agent itself: its own files and its pin set."""
    return tuple(scope for n, scope in enumerate(stack) if n == 0 or scope.kind is ScopeKind.PINS)


def upstream_stack(agent: Record) -> Stack:
    """Scopes that an agent inherits from."""
    return _upstream(agent.tenant, agent_from_record(agent).template_id)


def _upstream(tenant: str, template: str | None) -> Stack:
    template_layer = (Scope(tenant, ScopeKind.TEMPLATE, template),) if template else ()
    return (*template_layer, Scope(tenant, ScopeKind.DEFAULTS, ""))
