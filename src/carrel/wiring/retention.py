"""From settings to when approvals and jobs have had their time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from carrel.actions.approvals import transitions
from carrel.actions.sandbox import jobs
from carrel.wiring.ports import OpenStore

_DAY: Final = 86_400_000


async def expire_approvals_and_jobs(opened: OpenStore) -> Mapping[str, int]:
    """Forget approvals that are over and jobs that have ended, if long ago; how many."""
    settings, ports = opened.settings, opened.ports
    if not settings.hands_days:
        return {"approvals": 0, "jobs": 0}
    before = ports.clock.now() - settings.hands_days * _DAY
    return {
        "approvals": await transitions.retire(ports, before),
        "jobs": await jobs.retire(ports, before),
    }
