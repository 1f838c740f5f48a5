"""From settings to when approvals and jobs have had their time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from carrel.actions.approvals import transitions as approval_steps
from carrel.actions.sandbox import jobs
from carrel.wiring.world import OpenStore

_DAY: Final = 86_400_000


async def expire_approvals_and_jobs(opened: OpenStore) -> Mapping[str, int]:
    """Forget approvals that are over and jobs that have ended, if long ago; how many."""
    settings, world = opened.settings, opened.world
    if not settings.hands_days:
        return {"approvals": 0, "jobs": 0}
    before = world.clock.now() - settings.hands_days * _DAY
    return {
        "approvals": await approval_steps.retire(world, before),
        "jobs": await jobs.retire(world, before),
    }
