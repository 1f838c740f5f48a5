"""A server of the protocol, whose every answer is for whoever asks and the agent they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from carrel.core.version import VERSION
from carrel.server.mcp import prompts, resources, tools
from carrel.server.mcp.errors import Tell, log_failures
from carrel.server.mcp.request_context import McpRequest
from carrel.server.mcp.subscriptions import Subscriptions, listening

Context: TypeAlias = ServerRequestContext[Any, Any]
Visiting: TypeAlias = Callable[[Context], Awaitable[McpRequest]]
"""Who asks. Raises Unauthenticated and Missing."""
Paged: TypeAlias = types.PaginatedRequestParams | None

VISIT: Final = "carrel.visit"
"""Where an HTTP request has its Visit, in the scope that it came with."""
_INSTRUCTIONS: Final = (
    "One agent's desk in Carrel. The prompt `system` says who the agent is; its files are the "
    "resources; its tools remember, look up and work. Say `carrel/session` and `carrel/run` "
    "in `_meta` where there are such, and `carrel/scope` = `shared` where several people listen."
)


def create_server(
    visiting: Visiting,
    tell: Tell,
    closing: asyncio.Event,
    subscriptions: Subscriptions | None = None,
) -> Server[Any]:
    """With ``subscriptions`` for a client that can be spoken to at any time."""
    handlers = _Handlers(visiting, closing, subscriptions)
    guarded = log_failures(tell)
    server: Server[Any] = _CarrelServer(
        "carrel",
        version=VERSION,
        title="Carrel",
        instructions=_INSTRUCTIONS,
        on_list_tools=guarded(handlers.list_tools),
        on_call_tool=guarded(handlers.call_tool),
        on_list_resources=guarded(handlers.list_resources),
        on_list_resource_templates=guarded(handlers.list_templates),
        on_read_resource=guarded(handlers.read_resource),
        on_list_prompts=guarded(handlers.list_prompts),
        on_get_prompt=guarded(handlers.get_prompt),
        on_subscriptions_listen=guarded(handlers.listen),
        on_subscribe_resource=guarded(handlers.subscribe) if subscriptions else None,
        on_unsubscribe_resource=guarded(handlers.unsubscribe) if subscriptions else None,
    )
    return server


class _CarrelServer(Server[Any]):
    """Says only of what it will tell: of tools and prompts nobody is told when they change."""

    def get_capabilities(self, *args: Any, **more: Any) -> types.ServerCapabilities:
        able = super().get_capabilities(*args, **more)
        quiet = {"tools": types.ToolsCapability(), "prompts": types.PromptsCapability()}
        return able.model_copy(update=quiet)


class _Handlers:
    def __init__(
        self, visiting: Visiting, closing: asyncio.Event, subscriptions: Subscriptions | None
    ) -> None:
        self._visiting = visiting
        self._closing = closing
        self._subscriptions = subscriptions

    async def list_tools(self, ctx: Context, params: Paged) -> types.ListToolsResult:
        return await tools.list_tools(await self._visiting(ctx), ctx)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await tools.call_tool(await self._visiting(ctx), ctx, params)

    async def list_resources(self, ctx: Context, params: Paged) -> types.ListResourcesResult:
        visit = await self._visiting(ctx)
        if self._subscriptions is not None:
            await self._subscriptions.follow(visit, ctx)
        return await resources.listing(visit, ctx, params.cursor if params else None)

    async def list_templates(
        self, ctx: Context, params: Paged
    ) -> types.ListResourceTemplatesResult:
        return await resources.templates(await self._visiting(ctx), ctx)

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await resources.read_resource(await self._visiting(ctx), ctx, params.uri)

    async def list_prompts(self, ctx: Context, params: Paged) -> types.ListPromptsResult:
        return await prompts.listing(await self._visiting(ctx), ctx)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await prompts.getting(await self._visiting(ctx), ctx, params)

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await listening(await self._visiting(ctx), ctx, params, self._closing)

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        assert self._subscriptions is not None
        return await self._subscriptions.add(await self._visiting(ctx), ctx, params.uri)

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        assert self._subscriptions is not None
        return await self._subscriptions.drop(params.uri)
