"""Telling clients of files that change: what the log of events says, as the protocol says it."""

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
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.prompt.assembly import SHARED
from carrel.core.runs import Audience
from carrel.core.store.event import UPDATED, Event, EventFilter
from carrel.server.mcp.request_context import McpRequest
from carrel.server.mcp.resources import seen, uri_of
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
Publish: TypeAlias = Callable[[ServerEvent], Awaitable[None]]
LONGEST: Final = 3600.0
"""Seconds after which a stream ends, so that its reader comes back and shows its credential."""


@asynccontextmanager
async def _feeding(
    visit: McpRequest, sitting: ToolContext, publish: Publish, over: Callable[[], None]
) -> AsyncIterator[None]:
    """Publish what happens from this very moment on; it is over where the agent is gone."""
    wanted = EventFilter(visit.actor.tenant, types=frozenset({UPDATED}))
    _, batches = await streams.listen(visit.ports, wanted)
    feed = asyncio.create_task(_feed(visit, sitting, batches, publish))
    feed.add_done_callback(lambda _: over())
    try:
        yield
    finally:
        feed.cancel()
        with suppress(asyncio.CancelledError, NotFound):
            await feed


async def _feed(
    visit: McpRequest, context: ToolContext, batches: streams.Batches, publish: Publish
) -> None:
    known = set(await seen(context))
    async with aclosing(batches):
        async for batch in batches:
            changed = [event for event in batch if await visit.affects_agent(event.scope)]
            for path in _told_of(context, changed):
                await publish(ResourceUpdated(uri_of(context.slug, path)))
            if changed and (now := await _seen_now(visit, context)) != known:
                known = set(now)
                await publish(ResourcesListChanged())


async def _seen_now(visit: McpRequest, context: ToolContext) -> Set[Path]:
    """What is there now; its layers may be others than they were."""
    fresh = await visit.tool_context(None)
    return set(await seen(context if context.run else _as_heard(fresh, context.mode)))


def _as_heard(fresh: ToolContext, mode: Audience) -> ToolContext:
    return ToolContext(fresh.ports, fresh.actor, fresh.agent, fresh.stack, mode)


def _told_of(context: ToolContext, events: list[Event]) -> list[Path]:
    """What they changed, each path once; in a run nothing changes."""
    if context.run is not None:
        return []
    paths = dict.fromkeys(Path(event.payload["path"]) for event in events)
    return [path for path in paths if context.mode is Audience.MAIN or path in SHARED]


async def listening(
    visit: McpRequest,
    ctx: Context,
    params: types.SubscriptionsListenRequestParams,
    closing: asyncio.Event,
) -> types.SubscriptionsListenResult:
    """One stream of changes, until its client leaves or the server closes."""
    context = await visit.tool_context(ctx.meta)
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    ends = asyncio.create_task(_end(handler, closing))
    try:
        async with _feeding(visit, context, bus.publish, handler.close):
            return await handler(ctx, params)
    finally:
        ends.cancel()
        with suppress(asyncio.CancelledError):
            await ends


async def _end(handler: ListenHandler, closing: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(closing.wait(), LONGEST)
    handler.close()


class Subscriptions:
    """What the one client of a connection in both directions wants to be told of."""

    def __init__(self) -> None:
        self._uris: set[str] = set()
        self._session: ServerSession | None = None
        self._feed: asyncio.Task[None] | None = None

    async def add(self, visit: McpRequest, ctx: Context, uri: str) -> types.EmptyResult:
        context = await visit.tool_context(ctx.meta)
        if not uri.startswith(uri_of(context.slug, Path("x"))[:-1]):
            raise NotFound("there is no such resource")
        if len(self._uris) >= 10_000:
            raise ValidationError("a client follows at most 10,000 resources")
        self._uris.add(uri)
        await self.follow(visit, ctx)
        return types.EmptyResult()

    async def drop(self, uri: str) -> types.EmptyResult:
        self._uris.discard(uri)
        return types.EmptyResult()

    async def follow(self, visit: McpRequest, ctx: Context) -> None:
        """Begin to tell, once, of what happens from now on."""
        self._session = ctx.session
        if self._feed is not None:
            return
        context = await visit.tool_context(ctx.meta)
        ready = asyncio.Event()

        async def feed() -> None:
            over = asyncio.Event()
            async with _feeding(visit, context, self._publish, over.set):
                ready.set()
                await over.wait()

        self._feed = asyncio.create_task(feed())
        await asyncio.wait(
            {self._feed, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED
        )

    async def _publish(self, event: ServerEvent) -> None:
        assert self._session is not None
        if isinstance(event, ResourceUpdated):
            if event.uri in self._uris:
                await self._session.send_resource_updated(event.uri)
        elif isinstance(event, ResourcesListChanged):
            await self._session.send_resource_list_changed()

    async def close(self) -> None:
        if self._feed is not None:
            self._feed.cancel()
            with suppress(asyncio.CancelledError):
                await self._feed
