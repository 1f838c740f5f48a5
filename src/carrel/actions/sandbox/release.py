"""Letting go of instances that persistent sandboxes keep, when what they are made of is no more.

A commit has told that by then. So whatever goes wrong here is no error of the caller's: what is not
let go now ends when it was idle, or old, or with its server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from carrel.actions.records import iter_records
from carrel.core.sandbox.tool_access import namespace, reservation
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports
from carrel.ports.logging import log_of
from carrel.ports.sandbox import PersistentSandbox

_LONGEST: Final = 20.0
"""Seconds for all of them together."""
_log = log_of("carrel.jobs")


async def release_sandbox_instances(ports: Ports, sandbox: Record) -> None:
    """Those that it keeps for any workspace of its account."""
    spaces = iter_records(ports, sandbox.tenant, RecordType.WORKSPACE)
    await _release(ports, ((sandbox, one.id) async for one in spaces))


async def release_workspace_instances(ports: Ports, tenant: str, workspace: str) -> None:
    """Those that any sandbox of its account keeps for it."""
    boxes = iter_records(ports, tenant, RecordType.SANDBOX)
    await _release(ports, ((one, workspace) async for one in boxes))


async def _release(ports: Ports, pairs: AsyncIterator[tuple[Record, str]]) -> None:
    try:
        async with asyncio.timeout(_LONGEST):
            async for sandbox, workspace in pairs:
                provider = ports.sandboxes.get(sandbox.body["config"]["provider"])
                if isinstance(provider, PersistentSandbox):
                    called = namespace(sandbox.tenant, workspace)
                    await provider.release(reservation(called, sandbox.id))
    except Exception as problem:
        _log.error("instances not released", problem=type(problem).__name__)
