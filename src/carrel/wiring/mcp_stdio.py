"""MCP server of one agent over stdio, on a store opened by this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from carrel.actions.accounts import credentials, tenants
from carrel.actions.agents import agents
from carrel.actions.overlay import default_files
from carrel.core.access import Actor, CredentialKind, effective_permissions
from carrel.ports import Ports
from carrel.server.http.request_log import RequestLog, configure
from carrel.server.mcp.http import preload
from carrel.tools.approved_calls import run_approvals
from carrel.wiring.ports import OpenStore


async def serve(
    store: OpenStore, agent: str, token: str, tenant: str | None, query: Mapping[str, str]
) -> None:
    """Serve until the client disconnects.

    With a token as its owner, without one as the agent itself. Raises NotFound, Unauthenticated,
    Forbidden.
    """
    configure(store.settings.log_level)
    await asyncio.to_thread(preload)
    from carrel.server.mcp import CallScope, McpRequest  # noqa: PLC0415 - slow import

    ports, call_scope = store.ports, CallScope(**query)
    public_url = store.settings.public_url.rstrip("/")
    agent_actor = None if token else await _agent_actor(ports, agent, tenant)

    async def open_request(ctx: Any) -> McpRequest:
        actor = agent_actor or await credentials.authenticate(ports, token)
        return McpRequest(ports, actor, agent, call_scope, public_url)

    await (await open_request(None)).tool_context(None)
    await _run_stdio(ports, open_request)


async def _agent_actor(ports: Ports, agent: str, tenant: str | None) -> Actor:
    slug = tenant or tenants.DEFAULT_TENANT_SLUG
    operator = Actor(
        (await default_files.list_tenant_ids(ports, slug))[slug], default_files.SERVER_AUTHOR
    )
    record = await agents.get(ports, operator, agent)
    permissions = effective_permissions(CredentialKind.AGENT, None, None)
    return Actor(record.tenant, record.id, permissions, CredentialKind.AGENT, agent=record.id)


async def _run_stdio(ports: Ports, open_request: Any) -> None:
    from mcp.server.lowlevel import NotificationOptions  # noqa: PLC0415 - slow import
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - as above

    from carrel.server.mcp import Subscriptions, create_server  # noqa: PLC0415 - as above

    def log_failure(failure: BaseException) -> str:
        id = ports.clock.new_id("req")
        RequestLog().failure(id, failure)
        return id

    closing, subscriptions = asyncio.Event(), Subscriptions()
    approval_task = asyncio.create_task(run_approvals(ports, closing))
    server = create_server(open_request, log_failure, closing, subscriptions)
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    try:
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, options)
    finally:
        closing.set()
        await subscriptions.close()
        await approval_task
