"""Forgetting all that an agent remembered, once the agent itself is gone."""

from __future__ import annotations

from typing import Final

from carrel.core.memory.memory import of_agent
from carrel.core.store.record import QUIET, RecordChange, RecordType
from carrel.core.store.tree import Applied, Commit
from carrel.ports import Ports

_AT_ONCE: Final = 500
_EVER: Final = 2**62


async def delete_agent_memory(ports: Ports, author: str, tenant: str, agent: str) -> None:
    """Its memories, promotions, dreams and recalls, some at a time: nobody can reach them now."""
    for record_type in sorted(QUIET):
        while found := await ports.records.list(
            tenant, record_type, link=of_agent(agent), limit=_AT_ONCE
        ):
            changes = [RecordChange(one.tenant, one.type, one.id, None) for one in found]
            commit = Commit((), author, "forget", ports.clock.now(), changes=tuple(changes))
            [outcome] = await ports.trees.commit([commit])
            assert isinstance(outcome, Applied), outcome
    rest = (RecordChange(tenant, RecordType.DREAM, agent, None),)
    await ports.trees.commit([Commit((), author, "forget", ports.clock.now(), changes=rest)])
    await ports.recalls.prune(tenant, agent, _EVER)
