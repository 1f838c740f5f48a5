"""Change notifications for an MCP client that subscribes to resources.

Before 2026 a client subscribes to one resource at a time and is notified on its connection. The
server streams changes on one request instead, which names all resources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from carrel.cli.mcp_endpoint import McpEndpoint, Message, with_modern_version

_MAX_RESOURCES: Final = 10_000
_MAX_RETRY_SECONDS: Final = 30.0
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
_LIST_CHANGED: Final = "notifications/resources/list_changed"


class McpSubscriptions:
    def __init__(self, endpoint: McpEndpoint, notify: Callable[[Message], None]) -> None:
        self._endpoint, self._notify = endpoint, notify
        self._uris: frozenset[str] = frozenset()
        self._prefix = ""
        self._stream: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Start to notify of changes in the list of resources, if not started yet."""
        async with self._lock:
            if self._stream is None:
                await self._restart()

    async def add(self, uri: object) -> str:
        """Notify of changes of a resource; returns why it is refused, or an empty text."""
        async with self._lock:
            prefix = await self._load_prefix()
            if not isinstance(uri, str) or not prefix or not uri.startswith(prefix):
                return "no such resource"
            if len(self._uris) >= _MAX_RESOURCES:
                return f"a client can subscribe to at most {_MAX_RESOURCES:,} resources"
            self._uris |= {uri}
            await self._restart()
            return ""

    async def remove(self, uri: object) -> None:
        async with self._lock:
            if uri in self._uris:
                self._uris -= {str(uri)}
                await self._restart()

    async def close(self) -> None:
        await _cancel(self._stream)

    async def _load_prefix(self) -> str:
        """URI prefix of the agent's files; empty if the server does not tell."""
        if not self._prefix:
            reply = await self._endpoint.request(
                {"jsonrpc": "2.0", "id": "templates", "method": "resources/templates/list"}
            )
            templates = (reply.get("result") or {}).get("resourceTemplates") or [{}]
            self._prefix = str(templates[0].get("uriTemplate", "")).partition("{")[0]
        return self._prefix

    async def _restart(self) -> None:
        """Open a stream for the current resources, then close the one before."""
        previous, attempted = self._stream, asyncio.Event()
        self._stream = asyncio.create_task(self._listen(self._uris, attempted))
        await attempted.wait()
        await _cancel(previous)

    async def _listen(self, uris: frozenset[str], attempted: asyncio.Event) -> None:
        """Pass notifications on until cancelled; reconnects when the stream ends."""
        pause = 1.0
        while True:
            message = with_modern_version(_listen_request(uris), {})
            async with aclosing(self._endpoint.exchange(message)) as received:
                async for notification in received:
                    if notification.get("method") == _ACKNOWLEDGED:
                        pause = 1.0
                        if attempted.is_set():
                            self._notify_of_everything(uris)
                        attempted.set()
                    elif notification.get("method") in {_UPDATED, _LIST_CHANGED}:
                        self._notify(_without_meta(notification))
            attempted.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    def _notify_of_everything(self, uris: frozenset[str]) -> None:
        """After an interruption: anything may have changed."""
        self._notify({"jsonrpc": "2.0", "method": _LIST_CHANGED})
        for uri in sorted(uris):
            self._notify({"jsonrpc": "2.0", "method": _UPDATED, "params": {"uri": uri}})


def _listen_request(uris: frozenset[str]) -> Message:
    notifications: dict[str, Any] = {"resourcesListChanged": True}
    if uris:
        notifications["resourceSubscriptions"] = sorted(uris)
    params = {"notifications": notifications}
    return {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": params}


def _without_meta(notification: Message) -> Message:
    params = dict(notification.get("params") or {})
    params.pop("_meta", None)
    plain = {name: value for name, value in notification.items() if name != "params"}
    return {**plain, "params": params} if params else plain


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
