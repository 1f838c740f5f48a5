"""MCP notifications about changed files, from the event log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from carrel.actions.events import streams
from carrel.actions.events.event_access import Batches
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.core.store.event import WORKSPACE_UPDATED, Event, EventFilter
from carrel.server.mcp.request_context import McpRequest
from carrel.server.mcp.resources import uri_of, visible_files
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
Publish: TypeAlias = Callable[[ServerEvent], Awaitable[None]]
MAX_STREAM_SECONDS: Final = 3600.0
"""A stream ends after this time, so that the client authenticates again."""


@asynccontextmanager
async def _publish_changes(
    visit: McpRequest, context: ToolContext, publish: Publish, on_end: Callable[[], None]
) -> AsyncIterator[None]:
    """Publish changes while open; call `on_end` if the agent or the credential ends."""
    event_filter = EventFilter(visit.actor.tenant, types=frozenset({WORKSPACE_UPDATED}))
    _, batches = await streams.listen_as(visit.ports, visit.actor, event_filter)
    task = asyncio.create_task(_read_events(visit, context, batches, publish))
    task.add_done_callback(lambda _: on_end())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, NotFound):
            await task


async def _read_events(
    request: McpRequest, context: ToolContext, batches: Batches, publish: Publish
) -> None:
    visible = set(await visible_files(context))
    async with aclosing(batches):
        async for batch in batches:
            changed = [event for event in batch if await request.affects_agent(event.scope)]
            for path in _changed_paths(context, changed):
                await publish(ResourceUpdated(uri_of(context.slug, path)))
            if changed and (current := await _load_visible_paths(request, context)) != visible:
                visible = set(current)
                await publish(ResourcesListChanged())


async def _load_visible_paths(request: McpRequest, context: ToolContext) -> Set[Path]:
    """Paths visible now; the agent's layers may have changed."""
    current = await request.tool_context(None)
    return set(
        await visible_files(context if context.run else _with_audience(current, context.audience))
    )


def _with_audience(context: ToolContext, audience: Audience) -> ToolContext:
    return ToolContext(context.ports, context.actor, context.agent, context.stack, audience)


def _changed_paths(context: ToolContext, events: list[Event]) -> list[Path]:
    """Paths changed by the events, once each; none for a run."""
    if context.run is not None:
        return []
    paths = dict.fromkeys(Path(event.payload["path"]) for event in events)
    return [path for path in paths if is_visible(path, context.audience)]


async def listen(
    request: McpRequest,
    ctx: Context,
    params: types.SubscriptionsListenRequestParams,
    closing: asyncio.Event,
) -> types.SubscriptionsListenResult:
    """Stream changes until the client disconnects or the server closes."""
    context = await request.tool_context(ctx.meta)
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    end_task = asyncio.create_task(_close_later(handler, closing))
    try:
        async with _publish_changes(request, context, bus.publish, handler.close):
            return await handler(ctx, params)
    finally:
        end_task.cancel()
        with suppress(asyncio.CancelledError):
            await end_task


async def _close_later(handler: ListenHandler, closing: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(closing.wait(), MAX_STREAM_SECONDS)
    handler.close()


class Subscriptions:
    """Resources the client of a bidirectional connection subscribed to."""

    def __init__(self) -> None:
        self._uris: set[str] = set()
        self._session: ServerSession | None = None
        self._task: asyncio.Task[None] | None = None

    async def add(self, request: McpRequest, ctx: Context, uri: str) -> types.EmptyResult:
        context = await request.tool_context(ctx.meta)
        if not uri.startswith(uri_of(context.slug, Path("x"))[:-1]):
            raise NotFound("no such resource")
        if len(self._uris) >= 10_000:
            raise ValidationError("a client can subscribe to at most 10,000 resources")
        self._uris.add(uri)
        await self.start(request, ctx)
        return types.EmptyResult()

    async def remove(self, uri: str) -> types.EmptyResult:
        self._uris.discard(uri)
        return types.EmptyResult()

    async def start(self, request: McpRequest, ctx: Context) -> None:
        """Start to publish changes, if not started yet."""
        self._session = ctx.session
        if self._task is not None:
            return
        context = await request.tool_context(ctx.meta)
        ready = asyncio.Event()

        async def run() -> None:
            ended = asyncio.Event()
            async with _publish_changes(request, context, self._publish, ended.set):
                ready.set()
                await ended.wait()

        self._task = asyncio.create_task(run())
        await asyncio.wait(
            {self._task, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED
        )

    async def _publish(self, event: ServerEvent) -> None:
        assert self._session is not None
        if isinstance(event, ResourceUpdated):
            if event.uri in self._uris:
                await self._session.send_resource_updated(event.uri)
        elif isinstance(event, ResourcesListChanged):
            await self._session.send_resource_list_changed()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
