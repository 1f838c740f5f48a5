"""Deletes the records of an agent after the agent was deleted."""

from __future__ import annotations

from typing import Final

from carrel.actions.records import commit_changes
from carrel.core.access import Actor
from carrel.core.memory.memory import agent_index_key
from carrel.core.store.record import UNAUDITED_TYPES, RecordChange, RecordType
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
_DELETED_TYPES: Final = UNAUDITED_TYPES | {RecordType.APPROVAL, RecordType.JOB}
"""Types with the agent's index key."""
_END_OF_TIME_MS: Final = 2**62
_REASON: Final = "delete an agent's records"


async def delete_agent_records(ports: Ports, author: Actor | str, tenant: str, agent: str) -> None:
    """Delete an agent's memories, dreams, recalls, checkpoints, approvals and jobs.

    In batches; if interrupted, it can be repeated.
    """
    for record_type in sorted(_DELETED_TYPES):
        while batch := await ports.records.list(
            tenant, record_type, index_key=agent_index_key(agent), limit=_BATCH_SIZE
        ):
            changes = [
                RecordChange(record.tenant, record.type, record.id, None) for record in batch
            ]
            await commit_changes(ports, author, _REASON, changes)
    schedule_change = RecordChange(tenant, RecordType.DREAM, agent, None)
    await commit_changes(ports, author, _REASON, [schedule_change])
    await ports.recalls.prune(tenant, agent, _END_OF_TIME_MS)
