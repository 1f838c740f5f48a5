"""Which scopes lie over one another for an agent."""

from __future__ import annotations

from carrel.core.names import Kind, Scope, Stack
from carrel.core.record import Record


def stack_of(agent: Record) -> Stack:
    """An agent's own files over its template's over the defaults."""
    own, template = Scope(agent.tenant, Kind.AGENT, agent.id), agent.body["templateId"]
    beneath = (Scope(agent.tenant, Kind.TEMPLATE, template),) if template else ()
    return (own, *beneath, Scope(agent.tenant, Kind.DEFAULTS, ""))
