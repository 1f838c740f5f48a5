"""Records which memories were found by which question, as input of dreams."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.memory.memory import Memory, normalize_question
from carrel.core.memory.recall_records import Recall
from carrel.core.outages import StorageFull
from carrel.ports import Ports


async def record_recalls(
    ports: Ports, tenant: str, query: str, hits: Sequence[tuple[Memory, float]]
) -> None:
    """Record that a question found these memories, with their scores.

    Not on a full disk: reads go on, and dreams then know less.
    """
    if not hits:
        return
    rules = await load_rules(ports, tenant)
    question, at = rules.redact_text(normalize_question(query)), ports.clock.now()
    recalls = [
        Recall(ports.clock.new_id("rcl"), memory.agent, memory.id, question, score, at)
        for memory, score in hits
    ]
    with suppress(StorageFull):
        await ports.recalls.record(tenant, recalls)
