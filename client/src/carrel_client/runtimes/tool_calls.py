"""Tool calls that may wait for a person's approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel_client.approvals import Approvals
from carrel_client.drivers import AsyncDriver, Steps, SyncDriver, steps_of
from carrel_client.tools import ToolReply, Tools

REQUESTED: Final = "requested"
_WAIT_SECONDS: Final = 25
"""How long one request waits for the answer; the connection must stay open for it."""


def call_tool_and_wait(
    driver: SyncDriver | AsyncDriver,
    agent: str,
    name: str,
    arguments: Mapping[str, Any] | None,
    *,
    wait: bool = True,
    **options: str | None,
) -> Steps[ToolReply]:
    """Call a tool; if it needs an approval, wait until a person has answered.

    Without ``wait`` the reply has the approval if nobody has answered. ``options`` are those of
    ``Tools.call``.
    """
    tools: Tools[Any] = Tools(driver, agent)
    reply: ToolReply = yield from steps_of(tools.call, name, arguments, **options)
    approval = reply.approval
    if approval is None or (approval.status == REQUESTED and not wait):
        return reply
    approvals: Approvals[Any] = Approvals(driver)
    while approval.result is None:
        approval = yield from steps_of(approvals.get, approval.id, wait=_WAIT_SECONDS)
    result = approval.result
    return ToolReply(result.content, result.is_error, result.structured)
