"""Releases instances of persistent sandboxes after their settings changed.

The change is committed by then, so a failure here is logged, not raised: an instance that is
not released ends when it is idle, too old, or with its server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from carrel.actions.records import iter_records
from carrel.core.runs import Audience
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.sandbox.tool_access import derive_instance_key, derive_namespace
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports
from carrel.ports.logging import get_logger
from carrel.ports.sandbox import PersistentSandbox

_TIMEOUT_SECONDS: Final = 20.0
"""Seconds for all instances together."""
_log = get_logger("carrel.jobs")


async def release_sandbox_instances(ports: Ports, sandbox: Record) -> None:
    """Release the sandbox's instances for all workspaces of the account."""
    workspaces = iter_records(ports, sandbox.tenant, RecordType.WORKSPACE)
    await _release(ports, ((sandbox, workspace.id) async for workspace in workspaces))


async def release_workspace_instances(ports: Ports, tenant: str, workspace: str) -> None:
    """Release the workspace's instances in all sandboxes of the account."""
    sandboxes = iter_records(ports, tenant, RecordType.SANDBOX)
    await _release(ports, ((sandbox, workspace) async for sandbox in sandboxes))


async def _release(ports: Ports, pairs: AsyncIterator[tuple[Record, str]]) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            async for sandbox, workspace in pairs:
                provider = ports.sandboxes.get(account_from_record(sandbox).config["provider"])
                if isinstance(provider, PersistentSandbox):
                    workspace_namespace = derive_namespace(sandbox.tenant, workspace)
                    for audience in Audience:
                        await provider.release_instance(
                            derive_instance_key(workspace_namespace, sandbox.id, audience)
                        )
    except Exception as problem:
        _log.error("instances not released", problem=type(problem).__name__)
