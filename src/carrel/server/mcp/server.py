"""MCP server whose handlers act for the caller and agent of each request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from carrel.core.version import VERSION
from carrel.server.mcp import completions, prompts, resources, skills, tools
from carrel.server.mcp.call_progress import LogLevel
from carrel.server.mcp.errors import LogFailure, log_failures
from carrel.server.mcp.request_context import McpRequest
from carrel.server.mcp.subscriptions import Subscriptions, listen

Context: TypeAlias = ServerRequestContext[Any, Any]
ResolveRequest: TypeAlias = Callable[[Context], Awaitable[McpRequest]]
"""Resolves caller and agent. Raises Unauthenticated and NotFound."""
PageParams: TypeAlias = types.PaginatedRequestParams | None

REQUEST_SCOPE_KEY: Final = "carrel.mcp_request"
"""Key of the McpRequest in the ASGI scope."""
_INSTRUCTIONS: Final = (
    "One agent's workspace in Carrel. The prompt `system` defines the agent; its files are the "
    "resources; its tools provide memory, search and workspaces. Send `carrel/session` and "
    "`carrel/run` in `_meta` if they apply, and `carrel/scope` = `shared` for several people."
)


def create_server(
    resolve_request: ResolveRequest,
    log_failure: LogFailure,
    closing: asyncio.Event,
    subscriptions: Subscriptions | None = None,
) -> Server[Any]:
    """Create the server; `subscriptions` for a bidirectional connection (stdio)."""
    handlers = _Handlers(resolve_request, closing, subscriptions)
    guarded = log_failures(log_failure)
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
        on_completion=guarded(handlers.complete),
        on_subscriptions_listen=guarded(handlers.listen),
        on_subscribe_resource=guarded(handlers.subscribe) if subscriptions else None,
        on_unsubscribe_resource=guarded(handlers.unsubscribe) if subscriptions else None,
    )
    server.add_request_handler(
        "logging/setLevel", types.SetLevelRequestParams, guarded(handlers.set_log_level)
    )
    server.add_request_handler(
        "skills/list", types.PaginatedRequestParams, guarded(handlers.list_skills)
    )
    server.add_request_handler("skills/get", skills.SkillParams, guarded(handlers.get_skill))
    server.extensions = {skills.EXTENSION: {}}
    return server


class _CarrelServer(Server[Any]):
    """Server that announces no change notifications for tools and prompts."""

    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*args, **kwargs)
        static = {"tools": types.ToolsCapability(), "prompts": types.PromptsCapability()}
        return capabilities.model_copy(update=static)


class _Handlers:
    def __init__(
        self,
        resolve_request: ResolveRequest,
        closing: asyncio.Event,
        subscriptions: Subscriptions | None,
    ) -> None:
        self._resolve_request = resolve_request
        self._closing = closing
        self._subscriptions = subscriptions
        self._log_level = LogLevel()

    async def list_tools(self, ctx: Context, params: PageParams) -> types.ListToolsResult:
        return await tools.list_tools(await self._resolve_request(ctx), ctx)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        request = await self._resolve_request(ctx)
        return await tools.call_tool(request, ctx, params, self._log_level)

    async def list_resources(self, ctx: Context, params: PageParams) -> types.ListResourcesResult:
        request = await self._resolve_request(ctx)
        if self._subscriptions is not None:
            await self._subscriptions.start(request, ctx)
        return await resources.list_resources(request, ctx, params.cursor if params else None)

    async def list_templates(
        self, ctx: Context, params: PageParams
    ) -> types.ListResourceTemplatesResult:
        return await resources.list_templates(await self._resolve_request(ctx), ctx)

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await resources.read_resource(await self._resolve_request(ctx), ctx, params.uri)

    async def list_skills(
        self, ctx: Context, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        return await skills.list_skills(await self._resolve_request(ctx), ctx)

    async def get_skill(self, ctx: Context, params: skills.SkillParams) -> dict[str, Any]:
        return await skills.get_skill(await self._resolve_request(ctx), ctx, params.uri)

    async def list_prompts(self, ctx: Context, params: PageParams) -> types.ListPromptsResult:
        return await prompts.list_prompts(await self._resolve_request(ctx), ctx)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await prompts.get_prompt(await self._resolve_request(ctx), ctx, params)

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        return await completions.complete(await self._resolve_request(ctx), ctx, params)

    async def set_log_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Set the level of a connection; over HTTP there is none whose level could be kept."""
        await self._resolve_request(ctx)
        if self._subscriptions is not None:
            self._log_level.set(params.level)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await listen(await self._resolve_request(ctx), ctx, params, self._closing)

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        assert self._subscriptions is not None
        return await self._subscriptions.add(await self._resolve_request(ctx), ctx, params.uri)

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        assert self._subscriptions is not None
        return await self._subscriptions.remove(params.uri)
