"""Agents over a shared layer, and their layers, read in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from carrel.core.agents.agent import by_template_index
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_AGENT_PAGE_SIZE: Final = 5_000
"""Agents read per query."""
_TREE_BATCH_SIZE: Final = 500
"""Agents whose trees are read together."""


def followers_index(layer: Scope) -> str:
    """Index key of the agents above a layer; empty for all."""
    return by_template_index(layer.name) if layer.kind is ScopeKind.TEMPLATE else ""


async def iter_followers(ports: Ports, layer: Scope) -> AsyncIterator[Sequence[Record]]:
    """Iterate over the agents above a layer, in batches."""
    index_key, after = followers_index(layer), ""
    while batch := await ports.records.list(
        layer.tenant, RecordType.AGENT, index_key=index_key, after=after, limit=_AGENT_PAGE_SIZE
    ):
        yield batch
        after = batch[-1].id


async def iter_agent_layers(
    ports: Ports, tenant: str
) -> AsyncIterator[tuple[Record, Sequence[Tree]]]:
    """Iterate over every agent of a tenant and its layers."""
    after = ""
    while agents := await ports.records.list(
        tenant, RecordType.AGENT, after=after, limit=_TREE_BATCH_SIZE
    ):
        stacks = [build_stack(agent) for agent in agents]
        scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
        trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
        for agent, stack in zip(agents, stacks, strict=True):
            yield agent, [trees[scope] for scope in stack]
        after = agents[-1].id
