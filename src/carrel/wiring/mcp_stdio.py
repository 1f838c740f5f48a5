"""One agent's desk over stdio, on a store that this process opens itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from carrel.actions.accounts import credentials, tenants
from carrel.actions.agents import agents
from carrel.actions.overlay import default_files
from carrel.core.access import Actor, CredentialKind, granted
from carrel.ports import Ports
from carrel.server.http.request_log import RequestLog, configure
from carrel.server.mcp.http import preload
from carrel.tools.approved_calls import run_approvals
from carrel.wiring.ports import OpenStore


async def serve(
    opened: OpenStore, agent: str, token: str, tenant: str | None, asks: Mapping[str, str]
) -> None:
    """Until the client leaves. Raises Missing, Unauthenticated, and Forbidden.

    With a token as whoever that is of; without one as the agent itself, as if by its own key.
    """
    configure(opened.settings.log_level)
    await asyncio.to_thread(preload)
    from carrel.server.mcp import Circumstances, Visit  # noqa: PLC0415 - it takes a while to load

    ports, circumstances = opened.ports, Circumstances(**asks)
    itself = None if token else await _itself(ports, agent, tenant)

    async def visiting(ctx: Any) -> Visit:
        actor = itself or await credentials.authenticate(ports, token)
        return Visit(ports, actor, agent, circumstances)

    await (await visiting(None)).tool_context(None)
    await _speak(ports, visiting)


async def _itself(ports: Ports, agent: str, tenant: str | None) -> Actor:
    slug = tenant or tenants.FIRST
    operator = Actor((await default_files.tenants(ports, slug))[slug], default_files.CARREL)
    found = await agents.get(ports, operator, agent)
    held = granted(CredentialKind.AGENT, None, None)
    return Actor(found.tenant, found.id, held, CredentialKind.AGENT, agent=found.id)


async def _speak(ports: Ports, visiting: Any) -> None:
    from mcp.server.lowlevel import NotificationOptions  # noqa: PLC0415 - it takes a while to load
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - as above

    from carrel.server.mcp import Subscriptions, made  # noqa: PLC0415 - as above

    def tell(failure: BaseException) -> str:
        id = ports.clock.new_id("req")
        RequestLog().failure(id, failure)
        return id

    closing, subscriptions = asyncio.Event(), Subscriptions()
    approving = asyncio.create_task(run_approvals(ports, closing))
    server = made(visiting, tell, closing, subscriptions)
    told = server.create_initialization_options(NotificationOptions(resources_changed=True))
    try:
        async with stdio_server() as (heard, said):
            await server.run(heard, said, told)
    finally:
        closing.set()
        await subscriptions.close()
        await approving
