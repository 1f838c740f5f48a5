"""Deletes old approvals and jobs according to the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from carrel.actions.agents.erasure import erase_orphans, finish_erasures
from carrel.actions.approvals import transitions
from carrel.actions.sandbox import jobs
from carrel.wiring.ports import OpenStore

_DAY_MS: Final = 86_400_000


async def expire_approvals_and_jobs(store: OpenStore) -> Mapping[str, int]:
    """Delete approvals and jobs that ended before the retention limit; return counts."""
    settings, ports = store.settings, store.ports
    if not settings.approval_retention_days:
        return {"approvals": 0, "jobs": 0}
    cutoff = ports.clock.now() - settings.approval_retention_days * _DAY_MS
    return {
        "approvals": await transitions.delete_closed(ports, cutoff),
        "jobs": await jobs.delete_ended(ports, cutoff),
    }


async def finish_deletions(store: OpenStore) -> Mapping[str, int]:
    """Erase what interrupted deletions of sessions and agents left; return counts."""
    return {
        "erasures": await finish_erasures(store.ports),
        "agents": await erase_orphans(store.ports),
    }
