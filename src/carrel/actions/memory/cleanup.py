"""Forgetting all that an agent remembered, once the agent itself is gone."""

from __future__ import annotations

from typing import Final

from carrel.core.memory.memory import of_agent
from carrel.core.store.record import QUIET, RecordChange, RecordType
from carrel.core.store.tree import Applied, Commit
from carrel.ports import Ports

_AT_ONCE: Final = 500
_EVER: Final = 2**62


async def delete_agent_memory(ports: Ports, by: str, tenant: str, agent: str) -> None:
    """Its memories, promotions, dreams and recalls, some at a time: nobody can reach them now."""
    for noun in sorted(QUIET):
        while found := await ports.records.list(tenant, noun, link=of_agent(agent), limit=_AT_ONCE):
            changes = [RecordChange(one.tenant, one.noun, one.id, None) for one in found]
            commit = Commit((), by, "forget", ports.clock.now(), changes=tuple(changes))
            [outcome] = await ports.trees.commit([commit])
            assert isinstance(outcome, Applied), outcome
    rest = (RecordChange(tenant, RecordType.DREAM, agent, None),)
    await ports.trees.commit([Commit((), by, "forget", ports.clock.now(), changes=rest)])
    await ports.recalls.prune(tenant, agent, _EVER)
